"""The version, stated once: the package, its runs and the build read it here."""

__version__ = "0.1.0"
