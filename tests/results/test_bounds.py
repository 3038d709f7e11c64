"""Bounds hold every score that other verdicts on weak evidence could have given."""

from itertools import product
from random import Random

import pytest

from mind2web2.results.result_file import ResultFile
from mind2web2.rubric.node import VerificationNode, first_block
from mind2web2.rubric.tree_writing import tree_as_dict
from mind2web2.rubric.verdicts import Evidence, PageCheck, Vote

SEQUENTIAL, PARALLEL = "sequential", "parallel"


def evidence(passed, *, is_weak=False, prerequisites=()):
    """Return the evidence of one vote; a weak one is split."""
    votes = [passed, not passed, passed] if is_weak else [passed, passed]
    cast = [Vote(trial=trial, supported=vote, reasoning="") for trial, vote in enumerate(votes, 1)]
    return Evidence(
        decided_by="judge",
        num_trials=3,
        votes=tuple(cast),
        prerequisites=tuple(prerequisites),
    )


def skipped_behind(name, **more):
    """Return the evidence of a leaf that another one blocks."""
    return Evidence(decided_by="prerequisite", blocked_by=name, **more)


class Rubric:
    """A random small tree, its order of verification, and extra prerequisites."""

    def __init__(self, seed):
        draws = Random(seed)
        self.shape = self._node(draws, "n", 0, is_critical=False)
        root = self._built(self.shape)
        names = [node.id for node in root.walk() if not node.children]
        inner = [node.id for node in root.walk()]
        self.leaves = draws.sample(names, len(names))
        self.extra = {name: [] for name in names}
        for name in names:
            if draws.random() < 0.3:
                self.extra[name] = [
                    other for other in draws.sample(inner, 1) if not name.startswith(other)
                ]

    def _node(self, draws, name, depth, *, is_critical):
        children = []
        if depth == 0 or (depth < 3 and draws.random() < 0.35):
            children = [
                self._node(
                    draws,
                    f"{name}{k}",
                    depth + 1,
                    is_critical=is_critical or draws.random() < 0.35,
                )
                for k in range(draws.randint(1, 3))
            ]
        return name, is_critical, draws.choice([SEQUENTIAL, PARALLEL]), children

    def _built(self, shape):
        name, is_critical, strategy, children = shape
        node = VerificationNode(id=name, desc=name, critical=is_critical, strategy=strategy)
        for child in children:
            node.add_node(self._built(child))
        return node

    def result(self, verdicts, weak=()):
        """Return the result of verifying each leaf in turn, with these verdicts."""
        root = self._built(self.shape)
        for name in self.leaves:
            node, extra = (
                root.find(name),
                [root.find(other) for other in self.extra[name]],
            )
            block = first_block(node, extra)
            if block is None:
                found = evidence(
                    verdicts[name], is_weak=name in weak, prerequisites=self.extra[name]
                )
                node.decide(
                    float(verdicts[name]),
                    "passed" if verdicts[name] else "failed",
                    found,
                )
            else:
                extra = tuple(self.extra[name])
                node.decide(0.0, "skipped", skipped_behind(block.id, prerequisites=extra))
        score = root.compute_score(mutate=True)
        return {
            "final_score": score,
            "eval_breakdown": [{"verification_tree": tree_as_dict(root)}],
        }


def test_bounds_hold_every_flip_pattern():
    """Weak verdicts and those of skipped leaves go either way, in all combinations."""
    for seed in range(150):
        check_bounds(seed)


def check_bounds(seed):
    """Compare the bounds of a random rubric's score with the scores of all combinations."""
    rubric, draws = Rubric(seed), Random(-seed)
    verdicts = {name: draws.random() < 0.65 for name in rubric.leaves}
    weak = {name for name in rubric.leaves if draws.random() < 0.4}
    result = rubric.result(verdicts, weak)
    found = ResultFile.of(result).computed_bounds()
    assert found.low <= result["final_score"] <= found.high
    skipped = [name for name in rubric.leaves if status_of(result, name) == "skipped"]
    open_leaves = sorted(weak | set(skipped))[:9]
    scores = [
        rubric.result(verdicts | dict(zip(open_leaves, pattern, strict=True)))["final_score"]
        for pattern in product([False, True], repeat=len(open_leaves))
    ]
    assert found.low <= min(scores), seed
    assert max(scores) <= found.high, seed
    if not any(rubric.extra.values()) and len(open_leaves) == len(weak | set(skipped)):
        assert (found.low, found.high) == (min(scores), max(scores)), seed


def status_of(result, name):
    """Return the status that a leaf was given, whatever a sequence put in its place."""
    stack = [part["verification_tree"] for part in result["eval_breakdown"]]
    while stack:
        node = stack.pop()
        if node["id"] == name:
            return (node.get("superseded") or node)["status"]
        stack += node["children"]
    raise KeyError(name)


UNAVAILABLE = Evidence(
    decided_by="page",
    pages=(PageCheck(url="https://a.example", outcome="unavailable", reason="404"),),
)
NO_PAGE = Evidence(decided_by="page", reason="the sources given name no page")
BLOCKED_BY_SURE = skipped_behind("sure")
BLOCKED_BY_WEAK = skipped_behind("weak")


@pytest.mark.parametrize(
    ("leaves", "expected"),
    [
        (
            {"a": ("passed", evidence(True)), "b": ("failed", evidence(False))},
            (0.5, 0.5, 0, 0),
        ),
        (
            {"a": ("passed", evidence(True)), "b": ("failed", UNAVAILABLE)},
            (0.5, 1.0, 1, 0),
        ),
        ({"a": ("passed", evidence(True)), "b": ("failed", NO_PAGE)}, (0.5, 0.5, 0, 0)),
        (
            {
                "a": ("passed", evidence(True, is_weak=True)),
                "b": ("failed", evidence(False)),
            },
            (0.0, 0.5, 1, 0),
        ),
        (
            {"weak": ("failed", UNAVAILABLE), "b": ("skipped", BLOCKED_BY_WEAK)},
            (0.0, 1.0, 1, 1),
        ),
        (
            {"sure": ("failed", evidence(False)), "b": ("skipped", BLOCKED_BY_SURE)},
            (0.0, 0.0, 0, 0),
        ),
        (
            {
                "weak": ("passed", evidence(True, is_weak=True)),
                "b": ("passed", evidence(True, prerequisites=["weak"])),
            },
            (0.0, 1.0, 1, 0),
        ),
    ],
)
def test_bounds_by_evidence(leaves, expected):
    """Which evidence is weak, and which leaves follow from it."""
    root = VerificationNode(id="root", desc="root")
    for name, (status, found) in leaves.items():
        leaf = VerificationNode(id=name, desc=name)
        root.add_node(leaf)
        leaf.decide(float(status == "passed"), status, found)
    score = root.compute_score(mutate=True)
    tree = tree_as_dict(root)
    result = ResultFile.of({"final_score": score, "eval_breakdown": [{"verification_tree": tree}]})
    assert tuple(result.computed_bounds().model_dump().values()) == expected


def test_without_weak_verdicts_the_bounds_are_the_score():
    """One leaf was judged before its prerequisite failed."""
    for seed in range(150):
        rubric, draws = Rubric(seed), Random(-seed)
        result = rubric.result({name: draws.random() < 0.65 for name in rubric.leaves})
        found = ResultFile.of(result).computed_bounds()
        assert (found.low, found.high) == pytest.approx((result["final_score"],) * 2), seed
        assert (found.weak_leaves, found.unknown_leaves) == (0, 0), seed


@pytest.mark.parametrize(
    "result",
    [{}, {"final_score": 0.3}, {"final_score": 0.3, "eval_breakdown": []}],
)
def test_a_score_without_a_tree_has_no_bounds(result):
    """Nothing shows what it depends on."""
    assert ResultFile.of(result).computed_bounds() is None
