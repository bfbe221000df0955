"""The loop: act → step → count → store → update."""
