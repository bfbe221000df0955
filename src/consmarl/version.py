"""The version number, defined only here: the package, its runs and the build all read it."""

__version__ = "0.1.0"
