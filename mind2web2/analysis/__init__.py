"""Analysis: figures of agents, comparisons, audits and corrected scores, from stored results."""
