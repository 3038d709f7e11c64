"""The plugin ``bedrock``."""
