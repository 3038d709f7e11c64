"""Answers that are made from a right one, and the script's runs on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from mind2web2.plugin import FieldShape, PolicyRun, PolicyScript
from mind2web2_authoring.answers import Answer
from mind2web2_authoring.other_values import far_value, other_value
from mind2web2_authoring.places import Places

NO_ANSWER = "I could not find anything about this."
NEARLY = 1e-9
# Gets a value and its number, from 0, and returns another one.
Change = Callable[[Any, int], Any]


@dataclass
class Variants:
    """The runs of a script on answers that are made from a right one.

    Args:
        right: the answer that deserves 1.
        right_run: its run.
        places: the lines of the script.
        runs: those on variants that have a score.
        failures: why a variant has no score, with the first variant that failed so.
        believed_runs: those on variants of which all claims hold.
    """

    script: PolicyScript
    question: str
    right: Answer
    right_run: PolicyRun
    places: Places
    runs: list[PolicyRun] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)
    believed_runs: list[PolicyRun] = field(default_factory=list)

    @property
    def is_full(self) -> bool:
        """Tell whether the right answer scores 1."""
        return (self.right_run.score or 0.0) >= 1 - NEARLY

    def scores_like_right(self, run: PolicyRun) -> bool:
        """Tell whether a variant scores 1 like the right answer."""
        return self.is_full and run.score is not None and run.score >= 1 - NEARLY

    async def run(self, name: str, answer: Answer) -> PolicyRun:
        """Run the script on a variant; ``name`` says which one it is."""
        run = await self.script.run(answer.text, answer)
        if run.error is not None:
            self.failures.setdefault(run.error, name)
        else:
            self.runs.append(run)
        return run

    def fields(self, *kinds: str) -> Iterator[tuple[str, FieldShape]]:
        """Yield the fields of some kinds, with their extractions."""
        for key, shape in self.right.fields():
            if shape.kind in kinds:
                yield key, shape

    async def worthless(self, name: str, text: str) -> PolicyRun:
        """Run the script on a text that says nothing."""
        answer = self.right.variant(text=text, is_empty=True, truth=frozenset())
        answer.values.clear()
        return await self.run(name, answer)

    async def all_wrong(self) -> PolicyRun:
        """Run the script on other values in all fields, of which no claim holds."""
        return await self.run("wrong values", replace(self._all_other(), truth=frozenset()))

    async def all_other(self) -> PolicyRun:
        """Run the script on other values in all fields; all claims hold, so that all are asked."""
        answer = replace(self._all_other(), truth=None)
        return await self.script.run(answer.text, answer)

    def _all_other(self) -> Answer:
        answer = self.right
        for key, shape in self.fields("text", "number", "flag", "choice", "address"):
            answer = answer.with_field(key, shape, another(shape))
        return answer

    async def without_values(self) -> PolicyRun:
        """Run the script on items that have addresses and nothing else."""
        answer = self.right
        for key, shape in self.fields("text", "number", "flag", "choice"):
            answer = answer.with_field(key, shape, nothing)
        return await self.run("items without values", answer)

    async def unsourced(self) -> PolicyRun:
        """Run the script without addresses; the judge believes what the answer alone says."""
        answer = self.right.variant(believes=True)
        for key, shape in self.fields("address"):
            answer = answer.with_field(key, shape, nothing)
        return await self.run("an answer without addresses", answer)

    async def another(self, key: str, shape: FieldShape) -> PolicyRun:
        """Run the script on another value of one field."""
        return await self.with_change(f"another {shape.in_words}", key, shape, another(shape))

    async def believed(self, key: str, shape: FieldShape) -> PolicyRun:
        """Run the script on another value of one field; all claims hold, so that all are asked."""
        answer = self.right.with_field(key, shape, another(shape), truth=None)
        run = await self.script.run(answer.text, answer)
        self.believed_runs.append(run)
        return run

    async def far(self, key: str, shape: FieldShape, sign: int) -> PolicyRun:
        """Run the script on a much smaller or a much larger value of one field."""
        size = "small" if sign < 0 else "large"
        change: Change = lambda value, _number: far_value(value, sign)  # noqa: E731
        return await self.with_change(f"a {size} {shape.in_words}", key, shape, change)

    async def with_change(
        self, name: str, key: str, shape: FieldShape, change: Change
    ) -> PolicyRun:
        """Run the script on an answer with one field or list changed.

        One field has another value, or a list has other items.
        """
        return await self.run(name, self.right.with_field(key, shape, change))

    async def many_items(self) -> PolicyRun:
        """Run the script on lists that are four times as long."""
        answer = self.right
        for key, shape in self.fields("list"):
            answer = answer.with_field(key, shape, lambda value, _number: list(value or ()) * 4)
        return await self.run("many items", answer)

    def lists(self) -> Iterator[tuple[str, FieldShape, int]]:
        """Yield the lists of more than one item, with the number of their items."""
        for key, shape in self.fields("list", "text", "number"):
            items = self.right.values[key].get(shape.path[0])
            if len(shape.path) == 1 and isinstance(items, list) and len(items) > 1:
                yield key, shape, len(items)

    def has_value(self, key: str, shape: FieldShape) -> bool:
        """Tell whether a field has a value in the right answer that another can replace."""
        return self._changes(key, shape, another(shape))

    def has_far_value(self, key: str, shape: FieldShape) -> bool:
        """Tell whether a field is a number, or a text with one."""
        is_plain = shape.kind in ("text", "number")
        return is_plain and self._changes(key, shape, lambda value, _number: far_value(value, 1))

    def _changes(self, key: str, shape: FieldShape, change: Change) -> bool:
        return self.right.with_field(key, shape, change).values[key] != self.right.values[key]


def another(shape: FieldShape) -> Change:
    """Return the change of a field's value to another one."""
    return lambda value, number: other_value(shape, value, number)


def nothing(value: Any, _number: int) -> Any:
    """Return an empty value in place of one."""
    return [] if isinstance(value, list) else None
