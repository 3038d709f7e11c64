"""Claims and extractions: the questions put to the judge and the verdicts."""
