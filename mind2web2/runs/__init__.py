"""Runs: answers, results, provenance, metrics, estimate, verify-results."""
