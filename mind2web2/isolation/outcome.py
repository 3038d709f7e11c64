"""What a script's process says came of its evaluation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from pydantic import BaseModel, TypeAdapter

from mind2web2.judge_ledger import JudgeLedger
from mind2web2.script_inputs import ScriptInputs

_LEDGER = TypeAdapter(JudgeLedger)
_PLAIN = TypeAdapter(dict[str, Any])


class Done(BaseModel):
    """The last message of a script's process.

    Args:
        error: why there is no result.
        looked_up: pages that the script has looked for in the cache.
        brought: pages that it has come to see there.
        is_listed: it has asked for the list of stored pages.
        inputs: what else it has read.
    """

    result: Any = None
    error: dict[str, Any] | None = None
    ledger: dict[str, Any] = {}
    looked_up: list[str] = []
    brought: list[str] = []
    is_listed: bool = False
    inputs: ScriptInputs = ScriptInputs()


def ledger_as_json(ledger: JudgeLedger) -> dict[str, Any]:
    """Return what JSON can hold of a ledger."""
    values = {field.name: getattr(ledger, field.name) for field in fields(ledger)}
    # Keys of JSON are texts.
    served = [[*who, count] for who, count in values.pop("served").items()]
    plain: dict[str, Any] = _PLAIN.dump_python(values, mode="json")
    return {**plain, "served": served}


def ledger_from(raw: Mapping[str, Any]) -> JudgeLedger:
    """Return the ledger.

    Raises:
        ValueError: it is none.
    """
    served = Counter({(model, backend): int(count) for model, backend, count in raw.get("served", ())})
    return _LEDGER.validate_python({**raw, "served": served})
