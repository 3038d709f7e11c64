"""The plugin ``agents``."""
