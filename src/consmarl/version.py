"""The version, defined once: the package, its runs and the build read it from here."""

__version__ = "0.1.0"
