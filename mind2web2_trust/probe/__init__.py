"""Probes: change the fact on a page that a claim rests on, and see whether the judge notices."""
