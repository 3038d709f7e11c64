"""How scores come about, in words."""

import pytest
from rubrics import vectors

from mind2web2.rubric.arithmetic import explanations, score_arithmetic
from mind2web2.rubric.written_tree import WrittenNode, read_tree
from mind2web2.utils.text import number


def node(name, score=1.0, *children, critical=False, strategy="parallel"):
    """Return a node with this score."""
    status = "passed" if score == 1 else "partial" if score else "failed"
    return WrittenNode(
        id=name,
        critical=critical,
        strategy=strategy,
        score=score,
        status=status,
        children=children,
    )


PLAN = node("plan", critical=True)
CASES = [
    ((PLAN, node("tour"), node("ferry", 1 / 3), node("cost", 0.0)), 4 / 9,
     "0.44 = mean of tour 1, ferry 0.33, cost 0; gate passed: plan"),
    ((node("a"), node("b", 0.0)), 0.5, "0.50 = mean of a 1, b 0"),
    ((node("plan", 0.5, critical=True), node("a")), 0.0, "0 = gate closed by critical plan 0.50"),
    ((PLAN, node("date", critical=True)), 1.0, "1 = all critical children passed"),
    ([node(f"n{k}", float(k < 3)) for k in range(12)], 0.25, "0.25 = mean of 12 children: 3 of 1, "
                                                             "9 of 0"),
    ((node("a"), node("b", 0.0)), 0.75, "the script has set 0.75; its children give 0.50 = mean "
                                        "of a 1, b 0"),
]  # fmt: skip


@pytest.mark.parametrize(("children", "score", "expected"), CASES)
def test_a_score_is_explained_by_its_children(children, score, expected):
    """Critical ones are gates; the others are averaged."""
    assert score_arithmetic(node("root", score, *children)) == expected


def test_what_a_sequence_leaves_out_has_the_cause():
    """The child itself, whatever it is; those before the shortfall need none."""
    ferry, cost = node("ferry", 0.5, node("x"), node("y", 0.0)), node("cost", 0.0)
    root = node("root", 0.5, node("tour"), ferry, cost, strategy="sequential")
    found = explanations(root)
    assert found[id(cost)] == "counts 0: 'ferry' before it in the sequence scored below 1"
    assert found[id(ferry)] == "0.50 = mean of x 1, y 0"
    assert id(root.children[0]) not in found


def test_the_arithmetic_holds_for_every_tree():
    """Each inner node of the conformance cases begins with its score."""
    for case in vectors("tree.json"):
        root = read_tree(_described(case["input"], case["expected"]))
        found = explanations(root)
        for each in (node for node in root.walk() if node.children):
            score = f"{number(each.score)} = "
            assert found[id(each)].startswith((score, "counts 0: ")), case["name"]


def _described(tree, expected):
    children = [
        _described(*pair) for pair in zip(tree["children"], expected["children"], strict=True)
    ]
    return {
        **tree,
        "score": expected["score"],
        "status": expected["status"],
        "children": children,
    }
