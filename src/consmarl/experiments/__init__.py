"""Everything that touches files, clocks and screens."""
