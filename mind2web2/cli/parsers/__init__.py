"""Parsers of the commands: light modules, each of which names the module that runs its command."""
