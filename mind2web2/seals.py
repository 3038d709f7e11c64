"""The digest that a result has of all that it says itself; pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def sealed(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result with the digest of all that it says, so that a later change by accident shows.

    Whoever changes a result on purpose can seal it again: a seal is no signature.
    """
    return {**result, "run": {**result["run"], "content_sha256": content_sha256(result)}}


def content_sha256(result: Mapping[str, Any]) -> str:
    """Return the digest of all that a result says, its seal aside, as a reader of its file finds it."""
    read = json.loads(json.dumps(result))
    if isinstance(read.get("run"), dict):
        read["run"].pop("content_sha256", None)
    return hashlib.sha256(json.dumps(read, sort_keys=True).encode()).hexdigest()


def is_seal_broken(result: Mapping[str, Any]) -> bool:
    """Tell whether a result says something else than when it was written; one without a seal never does."""
    seal = _seal(result)
    return seal is not None and seal != content_sha256(result)


def has_seal(result: Mapping[str, Any]) -> bool:
    """Tell whether a result has the digest of all that it says."""
    return _seal(result) is not None


def is_seal_gone(result: Mapping[str, Any]) -> bool:
    """Tell whether a result has lost its seal: whatever records library versions has sealed it as well."""
    made_from = result.get("provenance")
    is_recorded = isinstance(made_from, dict) and bool(made_from.get("versions"))
    return is_recorded and not has_seal(result)


def _seal(result: Mapping[str, Any]) -> object:
    run = result.get("run")
    return run.get("content_sha256") if isinstance(run, dict) else None
