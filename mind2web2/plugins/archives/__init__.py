"""The plugin ``archives``."""
