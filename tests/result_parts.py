"""Parts of results that tests write by hand, complete as results have them."""

from __future__ import annotations

from typing import Any

JUDGE = {"provider": "openai", "endpoint": "https://judge.example", "model": "judge-1"}


def made_from(**fields: Any) -> dict[str, Any]:
    """Return a provenance."""
    return {
        "answer_sha256": "0" * 64,
        "script": "2025_07_14/lake.py",
        "script_sha256": "abc",
        "settings_sha256": "def",
        "judge": JUDGE,
        "pages": {},
        **fields,
    }


def shown(**fields: Any) -> dict[str, Any]:
    """Return the part of a page that a judge was shown."""
    return {
        "kind": "web",
        "sha256": None,
        "text_chars": 1,
        "text_chars_stored": 1,
        "images": 0,
        **fields,
    }


def vote(*, supported: bool = False, trial: int = 1, **fields: Any) -> dict[str, Any]:
    """Return a vote."""
    return {"trial": trial, "supported": supported, "reasoning": "", **fields}
