"""The training loop: act → step → count → store → update."""
