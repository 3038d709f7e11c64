"""The browser: its process, program and limits."""
