"""Judgments: the store, the caching judge, the budget, the circuit breaker."""
