"""What touches files, clocks and screens."""
