"""Running experiments: the part of the package that uses files, clocks and screens."""
