"""URLs: parse, normalise and find them (pure functions)."""
