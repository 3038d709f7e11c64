"""The plugin ``cascade``."""
