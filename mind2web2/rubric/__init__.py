"""The rubric tree: nodes, aggregation, preconditions, evidence, summary (pure functions)."""
