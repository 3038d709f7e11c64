"""The plugin ``gemini``."""
