"""Version of the library; a ledger names the one that wrote it."""

__all__ = ["__version__"]

__version__ = "0.3.0.dev2"
