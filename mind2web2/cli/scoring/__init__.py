"""The command that scores single answers."""
