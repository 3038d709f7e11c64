"""Figures by tag."""

from mind2web2.analysis.tag_figures import TagFigure, TagShares
from mind2web2.results.result_file import ResultFile


def result(*leaves):
    """Return a result with leaves as (status, tags).

    The first half of the leaves is below a node with a tag of its own.
    """
    nodes = [
        {"id": f"leaf_{number}", "status": status, "tags": list(tags), "children": []}
        for number, (status, tags) in enumerate(leaves)
    ]
    half = len(nodes) // 2
    part = {"id": "part", "tags": ["part"], "children": nodes[:half]}
    root = {"id": "root", "children": [part, *nodes[half:]] if half else nodes}
    return ResultFile.of({"final_score": 0.5, "eval_breakdown": [{"verification_tree": root}]})


def counted(shares, *results):
    """Return the figures of results, each with its task."""
    for task_id, each in results:
        shares.add(task_id, each)
    return shares


def test_each_task_counts_the_same():
    found = counted(
        TagShares(),
        ("a", result(("passed", ["x"]), ("failed", ["x", "y"]))),
        ("a", result(("passed", ["x"]), ("passed", ["x"]))),
        ("b", result(("skipped", ["x"]))),
    )
    assert found.figures() == [
        TagFigure(tag="part", passed=1.0, leaves=2, answers=2, tasks=1),
        TagFigure(tag="x", passed=0.375, leaves=5, answers=3, tasks=2),
        TagFigure(tag="y", passed=0.0, leaves=1, answers=1, tasks=1),
    ]
    assert TagShares().figures() == []
