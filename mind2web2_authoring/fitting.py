"""Made-up values that fit a script.

The code of the script compares with constants, and these are tried in turn.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Any

from mind2web2.plugin import (
    Choices,
    FieldShape,
    PolicyRun,
    PolicyScript,
    WrittenNode,
)
from mind2web2_authoring.answers import Answer

# Runs that the search for fitting values may take.
MAX_RUNS = 120
_MAX_ITEMS = 25
_MAX_CHARS = 60
_HOST = re.compile(
    r"(?:https?://)?\.?((?:[a-z0-9-]+\.)*[a-z0-9-]+\.?[a-z]{2,})(?:/.*)?", re.IGNORECASE
)
_PROSE = frozenset({"id", "desc", "claim", "prompt", "additional_instruction", "task_description"})


@dataclass
class Constants:
    """The constants that a script's code may compare values with."""

    texts: list[str] = field(default_factory=list)
    groups: list[tuple[str, ...]] = field(default_factory=list)
    numbers: list[float] = field(default_factory=list)

    @property
    def hosts(self) -> list[str]:
        """Return the texts that may be domains or addresses."""
        hosts = [text for text in self.texts if "." in text and _HOST.fullmatch(text)]
        return [text.removeprefix("www.") for text in hosts]


def constants_of(script: PolicyScript) -> Constants:
    """Return a script's constants, without prompts, claims and descriptions."""
    constants = Constants()
    waiting: list[ast.AST] = [script.syntax()]
    while waiting:
        node = waiting.pop()
        match node:
            case ast.Constant(value):
                _note(value, constants)
            case ast.Call(
                args=[ast.Constant(int(y)), ast.Constant(int(m)), ast.Constant(int(d)), *_]
            ):
                # A day, such as ``date(2025, 9, 1)``.
                with suppress(ValueError):
                    constants.texts.append(str(date(y, m, d)))
            case ast.List(parts) | ast.Set(parts) | ast.Tuple(parts):
                texts = [each.value for each in parts if isinstance(each, ast.Constant)]
                if len(texts) > 1 and all(isinstance(each, str) for each in texts):
                    constants.groups.append(tuple(map(str, texts)))
        waiting.extend(_code_below(node))
    constants.texts = list(dict.fromkeys(reversed(constants.texts)))
    constants.numbers = sorted(set(constants.numbers))
    return constants


def _code_below(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a piece of syntax but prose."""
    for child in ast.iter_child_nodes(node):
        is_doc = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
        is_prose = isinstance(child, ast.keyword) and child.arg in _PROSE
        if not (is_doc or is_prose or isinstance(child, ast.JoinedStr)):
            yield child


def _note(value: Any, constants: Constants) -> None:
    if isinstance(value, str) and 1 < len(value) <= _MAX_CHARS:
        constants.texts.append(value)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        constants.numbers.append(value)


def _values_for(kind: str, name: str, constants: Constants) -> Iterator[tuple[Any, ...]]:
    """Yield values for a kind of field, one for each item in turn."""
    if kind == "address":
        for host in constants.hosts:
            address = host if host.startswith("http") else f"https://www.{host.lstrip('.')}"
            yield tuple(f"{address.rstrip('/')}/{name}/{item}" for item in range(_MAX_ITEMS))
    elif kind == "number":
        for number in constants.numbers:
            yield from ((number + step,) for step in (0, 1, -1))
    elif kind == "text":
        yield from constants.groups
        for text in constants.texts:
            yield from _like(text)
        for number in constants.numbers:
            yield from ((f"{number + step:g}",) for step in (0, 1, -1))


def _like(text: str) -> Iterator[tuple[str | None, ...]]:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        # For all items, or for the first alone.
        yield (text,)
        yield (text, *[None] * _MAX_ITEMS)
    else:
        yield from ((str(day + timedelta(step)),) for step in (0, 1, -1))


async def fit_values(
    script: PolicyScript, answer: Answer, first: PolicyRun, constants: Constants
) -> tuple[Answer, PolicyRun]:
    """Return made-up values on which more of the script's tests pass, with their run."""
    best, best_run, runs = answer, first, 0
    for choices in _tries(answer, constants):
        if not is_refused(best_run) or runs >= MAX_RUNS:
            break
        for base in dict.fromkeys((0, 1)):
            # With the best values so far, and alone.
            merged = _merge(best.choices, choices) if base == 0 else choices
            other = replace(answer, choices=merged, values={}, templates={}, _prompts={})
            run = await script.run(other.text, other)
            runs += 1
            if _progress(run) > _progress(best_run):
                best, best_run = other, run
            if best.choices == Choices():
                break
    return best, best_run


def is_refused(run: PolicyRun) -> bool:
    """Tell whether the script's own code has refused values."""
    return run.score is None or bool(leaves_failed_by_code(run))


def leaves_failed_by_code(run: PolicyRun) -> list[WrittenNode]:
    """Return the leaves that the script's own code has failed."""
    by_code = [leaf for leaf in run.leaves if leaf.grounds.decided_by == "script"]
    return [leaf for leaf in by_code if leaf.verdict.status == "failed"]


def _progress(run: PolicyRun) -> tuple[float, float]:
    if run.score is None:
        return -1.0, 0.0
    passed = sum(leaf.verdict.status == "passed" for leaf in run.leaves)
    return run.score, passed / max(len(run.leaves), 1)


def _merge(first: Choices, second: Choices) -> Choices:
    return Choices(
        {**first.values, **second.values},
        {**first.kinds, **second.kinds},
        {**first.counts, **second.counts},
    )


def _tries(answer: Answer, constants: Constants) -> Iterator[Choices]:
    """Yield what to try: numbers of items, all fields of a kind at once, then each field alone."""
    fields = list(answer.fields())
    counts = [int(number) for number in constants.numbers if 1 <= number <= _MAX_ITEMS]
    lists = [(key, shape.path) for key, shape in fields if _is_counted(answer, key, shape)]
    for count in dict.fromkeys(each + step for each in counts for step in (0, 1)):
        yield Choices(counts=dict.fromkeys(lists, count))
    for values in _values_for("address", "page", constants):
        yield Choices(kinds={"address": values})
    # There are fewer numbers than texts to try.
    for key, shape in sorted(fields, key=lambda each: each[1].kind != "number"):
        for values in _values_for(shape.kind, shape.name, constants):
            yield Choices(values={(key, shape.path): values})


def _is_counted(answer: Answer, key: str, shape: FieldShape) -> bool:
    value = answer.values.get(key, {}).get(shape.path[0])
    return isinstance(value, list) and len(shape.path) == 1 and shape.kind in ("list", "text")
