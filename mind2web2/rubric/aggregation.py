"""How the outcomes of children make up the outcome of their parent (scoring.md); pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol, Self, TypeGuard

Status = Literal["initialized", "passed", "failed", "partial", "skipped"]


def is_score(value: object) -> TypeGuard[float]:
    """Tell whether a value from a file is a score: a number from 0 to 1."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


class Outcome(NamedTuple):
    """A score in [0, 1] and the status that goes with it."""

    score: float
    status: Status

    @property
    def blocks(self) -> bool:
        """Tell whether a leaf with this outcome keeps its dependents from being judged (eval-scripts.md)."""
        return self.status in ("failed", "skipped")


_SKIPPED = Outcome(0.0, "skipped")


class Scored(Protocol):
    """A node of a rubric tree: a script's own, or one that a result file has."""

    @property
    def critical(self) -> bool:
        """Tell whether it is a gate for its parent."""

    @property
    def strategy(self) -> str:
        """Return ``parallel`` or ``sequential``."""

    @property
    def children(self) -> Sequence[Self]:
        """Return the nodes right below; a leaf has none."""

    @property
    def verdict(self) -> Outcome:
        """Return the verdict on a leaf."""

    def walk(self) -> Iterator[Self]:
        """Yield this node and all below it, each before its children."""


def aggregate(root: Scored, verdicts: Mapping[int, Outcome] | None = None) -> dict[int, Outcome]:
    """Return the outcome of every node from ``root`` down, by ``id(node)``, in linear time.

    Leaves count as decided; nothing is written to the nodes.

    Args:
        verdicts: by ``id(leaf)``, in place of the leaves' own.
    """
    verdicts = verdicts or {}
    outcomes: dict[int, Outcome] = {}
    # Each node comes before its children in walk(), so that the reverse has children first, however deep.
    for node in reversed(list(root.walk())):
        if not node.children:
            outcomes[id(node)] = verdicts.get(id(node), node.verdict)
            continue
        children = [outcomes[id(child)] for child in node.children]
        if node.strategy == "sequential":
            children = end_sequence(children)
            outcomes.update(zip(map(id, node.children), children, strict=True))
        outcomes[id(node)] = gate_then_average(children, [child.critical for child in node.children])
    return outcomes


def end_sequence(children: Sequence[Outcome]) -> list[Outcome]:
    """Return the outcomes with all behind the first shortfall skipped (rule 2)."""
    for position, child in enumerate(children):
        if child.score < 1.0:
            return [*children[: position + 1], *[_SKIPPED] * (len(children) - position - 1)]
    return list(children)


def gate_then_average(children: Sequence[Outcome], critical: Sequence[bool]) -> Outcome:
    """Return a parent's outcome: 0 behind any critical shortfall, else the others' mean (rules 3 and 4)."""
    gate = [child.score for child, is_critical in zip(children, critical, strict=True) if is_critical]
    averaged = [child.score for child, is_critical in zip(children, critical, strict=True) if not is_critical]
    if any(score < 1.0 for score in gate):
        score = 0.0
    else:
        score = sum(averaged) / len(averaged) if averaged else 1.0
    return Outcome(score, _inner_status(score, children))


def _inner_status(score: float, children: Sequence[Outcome]) -> Status:
    if score >= 1.0:
        return "passed"
    if score > 0.0:
        return "partial"
    return "failed" if any(child.status == "failed" for child in children) else "skipped"
