"""Rubric trees for tests.

They are built from plain data, edited at random, and scored by a naive second opinion.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import strategies as st

from mind2web2 import Evaluator, VerificationNode
from mind2web2.rubric.node import blocks

VECTORS = Path(__file__).parent / "fixtures/vectors"
BLOCKING = ("failed", "skipped")
VERDICTS = (
    (1.0, "passed"),
    (0.0, "failed"),
    (0.0, "skipped"),
    (0.0, "initialized"),
    (0.5, "partial"),
)


def vectors(name):
    """Return the conformance cases of a file."""
    return json.loads((VECTORS / name).read_text(encoding="utf-8"))["vectors"]


def built_by_hand(tree):
    """Return a tree made of nodes alone."""
    node = VerificationNode(**{**tree, "desc": tree["id"], "children": []})
    for child in tree["children"]:
        node.add_node(built_by_hand(child))
    return node


def built_by_evaluator(tree, **settings):
    """Return an evaluator with the tree below its root.

    ``add_parallel`` and its siblings build the tree.
    """
    evaluator = Evaluator()
    evaluator.initialize("task", strategy=tree["strategy"], **settings)
    _add_children(evaluator, tree, evaluator.root)
    return evaluator


def _add_children(evaluator, tree, parent):
    for child in tree["children"]:
        name, critical = child["id"], child["critical"]
        if child["kind"] == "leaf":
            evaluator.add_leaf(name, name, parent, critical, child["score"], child["status"])
        else:
            add = (
                evaluator.add_sequential
                if child["strategy"] == "sequential"
                else evaluator.add_parallel
            )
            _add_children(evaluator, child, add(name, name, parent, critical=critical))


def outcomes(node):
    """Return a node's scores and statuses as the vectors write them."""
    return {
        "id": node.id,
        "score": round(node.score, 9),
        "status": node.status,
        "children": [outcomes(child) for child in node.children],
    }


@dataclass(eq=False)
class Shadow:
    """A node as the rules see it, kept beside the real one."""

    real: VerificationNode
    parent: "Shadow | None" = None
    critical: bool = False
    strategy: str = "parallel"
    score: float = 0.0
    status: str = "initialized"
    children: list["Shadow"] = field(default_factory=list)

    def everything(self):
        """Return this node and all below."""
        return [self, *(node for child in self.children for node in child.everything())]

    def leaves(self):
        """Return the leaves here and below."""
        return [node for node in self.everything() if not node.children]

    def expected_score(self):
        """Return the score by the letter of scoring.md."""
        if not self.children:
            return self.score
        scores = [child.expected_score() for child in self.children]
        if self.strategy == "sequential":
            ended = next(
                (place for place, score in enumerate(scores) if score < 1.0),
                len(scores),
            )
            scores = [score if place <= ended else 0.0 for place, score in enumerate(scores)]
        scored = list(zip(self.children, scores, strict=True))
        if any(score < 1.0 for child, score in scored if child.critical):
            return 0.0
        averaged = [score for child, score in scored if not child.critical]
        return sum(averaged) / len(averaged) if averaged else 1.0

    def expected_prerequisites(self, extra=()):
        """Return the leaves that eval-scripts.md names, this node itself left out."""
        sources, node = list(extra), self
        while node.parent is not None:
            siblings = node.parent.children
            place = siblings.index(node)
            in_sequence = node.parent.strategy == "sequential"
            for other, sibling in enumerate(siblings):
                if other != place and (sibling.critical or (in_sequence and other < place)):
                    sources.append(sibling)
            node = node.parent
        leaves = {id(leaf): leaf for source in sources for leaf in source.leaves()}
        return [leaf for leaf in leaves.values() if leaf is not self]


_PLACES = st.integers(0, 10**6)
EDITS = st.lists(
    st.one_of(
        st.tuples(
            st.just("add"),
            _PLACES,
            st.booleans(),
            st.sampled_from(["parallel", "sequential"]),
        ),
        st.tuples(st.just("decide"), _PLACES, st.sampled_from(VERDICTS)),
        st.tuples(st.just("critical"), _PLACES, st.booleans()),
        st.tuples(st.just("strategy"), _PLACES, st.sampled_from(["parallel", "sequential"])),
        st.tuples(st.just("read"), _PLACES),
        st.tuples(st.just("write"), _PLACES),
    ),
    max_size=40,
)


def apply_edit(root, number, edit):
    """Carry out an edit on the real tree and on its shadow."""
    what, place, *details = edit
    nodes = root.everything()
    shadow = nodes[place % len(nodes)]
    if what == "add":
        _add(shadow, number, *details)
    elif what == "decide":
        # Scripts may also set both fields themselves, without decide().
        shadow.score, shadow.status = shadow.real.score, shadow.real.status = details[0]
    elif what == "critical":
        _mark(shadow, details[0])
    elif what == "strategy":
        shadow.strategy = details[0]
        shadow.real.strategy = details[0]
    elif what == "read":
        assert shadow.real.aggregated_score == shadow.real.compute_score()
    else:
        shadow.real.compute_score(mutate=True)


def _mark(shadow, critical):
    """Set or clear the critical flag, or see it refused where the tree would break its rule."""
    under_critical = shadow.parent is not None and shadow.parent.critical
    if (under_critical and not critical) or (
        critical and not all(child.critical for child in shadow.children)
    ):
        with pytest.raises(ValueError, match="non-critical"):
            shadow.real.critical = critical
    else:
        shadow.critical = shadow.real.critical = critical


def _add(parent, number, critical, strategy):
    critical = critical or parent.critical
    real = VerificationNode(id=f"n{number}", desc="added", critical=critical, strategy=strategy)
    parent.real.add_node(real)
    parent.children.append(Shadow(real, parent, critical, strategy))


def prerequisite_leaves(node, extra=()):
    """Return the leaves that ``node`` depends on, each once.

    Args:
        node: the node to verify.
        extra: further nodes whose leaves must hold.
    """
    blocking_leaf(node, extra)  # raises where the node is its own prerequisite
    leaves = {}
    for source in (*extra, *_required_siblings(node)):
        for leaf in source.walk():
            if not leaf.children and leaf is not node:
                leaves[id(leaf)] = leaf
    return list(leaves.values())


def blocking_leaf(node, extra=()):
    """Return a failed or skipped leaf among the prerequisites, ``None`` when nothing blocks.

    Takes time in proportion to the depth of the tree, not to its size.
    """
    return next(blocks(node, extra), None)


def _required_siblings(node):
    """Yield, on every level below the root, critical siblings and earlier ones of a sequence."""
    while node is not None and node.parent is not None:
        in_sequence = node.parent.strategy == "sequential"
        for sibling in node.parent.children:
            if sibling is not node and (
                sibling.critical or (in_sequence and sibling.position < node.position)
            ):
                yield sibling
        node = node.parent
