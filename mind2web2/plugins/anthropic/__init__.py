"""The plugin ``anthropic``."""
