"""Scores of single answers, in the caller's process or over HTTP."""
