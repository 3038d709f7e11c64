"""How each score of a rubric tree comes about, in words; pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from mind2web2.rubric.verdicts import Outcome, gate_then_average
from mind2web2.rubric.written_tree import WrittenNode
from mind2web2.utils.names import first_names
from mind2web2.utils.text import number

# If there are more children, the scores are counted.
_MAX_NAMED = 8
_MAX_GATES_NAMED = 3
# Results have scores as they were written; sums may differ by their last digits.
_TOLERANCE = 1e-6


def explanations(root: WrittenNode) -> dict[int, str]:
    """Return a line that explains the score of a node, by ``id(node)``.

    An inner node has its arithmetic; a child behind the first shortfall of a sequence has the cause
    instead.
    """
    lines: dict[int, str] = {}
    for node in root.walk():
        if node.children and id(node) not in lines:
            lines[id(node)] = score_arithmetic(node)
        lines |= {id(child): cause for child, cause in _behind_shortfall(node)}
    return lines


def score_arithmetic(node: WrittenNode) -> str:
    """Return how the score of an inner node follows from its children, or that it does not."""
    outcomes = [Outcome(child.score, child.status) for child in node.children]
    by_children = gate_then_average(outcomes, [child.critical for child in node.children]).score
    how = f"{number(by_children)} = {_operands(node.children)}"
    if math.isclose(by_children, node.score, rel_tol=0.0, abs_tol=_TOLERANCE):
        return how
    return f"the script has set {number(node.score)}; its children give {how}"


def _operands(children: Sequence[WrittenNode]) -> str:
    gates = [child for child in children if child.critical]
    closed = [child for child in gates if child.score < 1.0]
    counted = [child for child in children if not child.critical]
    if closed:
        gates_named = first_names(list(map(_name_and_score, closed)), _MAX_GATES_NAMED)
        return f"gate closed by critical {gates_named}"
    if not counted:
        return "all critical children passed"
    passed = f"; gate passed: {_names(gates)}" if gates else ""
    return f"mean of {_summands(counted)}{passed}"


def _summands(children: Sequence[WrittenNode]) -> str:
    if len(children) <= _MAX_NAMED:
        return ", ".join(_name_and_score(child) for child in children)
    counts = Counter(child.score for child in children)
    parts = [f"{counts[score]} of {number(score)}" for score in sorted(counts, reverse=True)]
    if len(parts) > _MAX_NAMED:
        return f"{len(children)} children"
    return f"{len(children)} children: {', '.join(parts)}"


def _behind_shortfall(node: WrittenNode) -> list[tuple[WrittenNode, str]]:
    """Return the children that a sequence leaves out, each with the cause."""
    if node.strategy != "sequential":
        return []
    short = next((place for place, child in enumerate(node.children) if child.score < 1.0), None)
    if short is None:
        return []
    cause = f"counts 0: '{node.children[short].id}' before it in the sequence scored below 1"
    return [(child, cause) for child in node.children[short + 1 :]]


def _name_and_score(node: WrittenNode) -> str:
    return f"{node.id} {number(node.score)}"


def _names(nodes: Sequence[WrittenNode]) -> str:
    if len(nodes) > _MAX_GATES_NAMED:
        return f"{len(nodes)} critical children"
    return ", ".join(node.id for node in nodes)
