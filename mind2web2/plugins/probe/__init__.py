"""Probes: change the fact on a page that a claim rests on, and see whether the judge notices."""

# The value of ``--sample`` that asks until the interval is narrow enough.
AUTO = "auto"
