"""Commands that get a benchmark and answers, and hand results in."""
