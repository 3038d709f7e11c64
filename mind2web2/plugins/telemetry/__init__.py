"""The plugin ``telemetry``."""
