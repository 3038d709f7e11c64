"""Signs that a capture may be wrong."""
