"""The version of the package, which is that of the ``pawl`` that its wheels carry."""

__version__ = "0.1.0"
