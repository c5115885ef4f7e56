"""The version, for all who ask: kvstore_ext.__version__, the commands' --version, and the wheel."""

__version__ = "0.1.0"
