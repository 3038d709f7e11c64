"""Find out whether an AI search agent's cited answers are true."""
