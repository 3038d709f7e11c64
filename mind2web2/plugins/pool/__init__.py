"""The plugin ``pool``."""
