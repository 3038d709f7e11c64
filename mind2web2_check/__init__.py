"""Checks whether the cited pages of any report say what it says."""
