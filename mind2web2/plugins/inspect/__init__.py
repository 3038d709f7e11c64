"""The plugin ``inspect``."""
