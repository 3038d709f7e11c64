"""Judgments to store."""

from mind2web2.judge.judgment import Judgment


def judgment(**changes):
    """Return a judgment."""
    fields = {
        "key": "k1",
        "endpoint": "openai http://localhost/v1",
        "model": "judge-1",
        "outcome": "reply",
        "text": "yes",
        "created": "2026-01-01T00:00:00.000+00:00",
        "purpose": "verify",
    }
    return Judgment(**{**fields, **changes})
