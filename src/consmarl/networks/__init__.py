"""Networks: their parameters and forward passes."""
