"""The plugin ``batch``."""
