"""``--engine ray``: answers are judged, and pages captured, on the nodes of a Ray cluster."""
