"""The eval scripts of checks."""
