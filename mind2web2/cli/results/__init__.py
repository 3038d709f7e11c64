"""The commands that look at results."""
