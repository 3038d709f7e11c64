"""Statistics of judges and agents: pure functions, values in and values out."""
