"""Files, text, event loops, worker processes, images and logs: the base of the package."""
