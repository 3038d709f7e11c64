"""The plugin ``office``."""
