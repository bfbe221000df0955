"""Parameters and forward passes."""
