"""Figures by tag, and the weighted figure."""

import pytest

from mind2web2.analysis.tag_figures import TagFigure, tag_figures, weighted_figure
from mind2web2.results.result_file import ResultFile


def result(*leaves, weighted=None):
    """Return a result with leaves as (status, tags), the first half below a node with a tag of its own."""
    nodes = [
        {"id": f"leaf_{number}", "status": status, "tags": list(tags), "children": []}
        for number, (status, tags) in enumerate(leaves)
    ]
    half = len(nodes) // 2
    part = {"id": "part", "tags": ["part"], "children": nodes[:half]}
    root = {"id": "root", "children": [part, *nodes[half:]] if half else nodes}
    extra = {} if weighted is None else {"weighted_score": weighted}
    return ResultFile.of(
        {"final_score": 0.5, "eval_breakdown": [{"verification_tree": root}], **extra}
    )


def test_each_task_counts_the_same():
    """However many answers and leaves it has; tags of inner nodes hold for the leaves below."""
    results = {
        ("a", "1"): result(("passed", ["x"]), ("failed", ["x", "y"])),
        ("a", "2"): result(("passed", ["x"]), ("passed", ["x"])),
        ("b", "1"): result(("skipped", ["x"])),
    }
    assert tag_figures(results) == [
        TagFigure("part", passed=1.0, leaves=2, answers=2, tasks=1),
        TagFigure("x", passed=0.375, leaves=5, answers=3, tasks=2),
        TagFigure("y", passed=0.0, leaves=1, answers=1, tasks=1),
    ]
    assert tag_figures({}) == []


def test_the_weighted_figure_is_there_where_leaves_have_weights():
    """Answers without one do not count."""
    results = {
        ("a", "1"): result(weighted=0.2),
        ("a", "2"): result(weighted=0.4),
        ("b", "1"): result(),
    }
    assert weighted_figure(results) == (pytest.approx(0.3), 2)
    assert weighted_figure({("b", "1"): result()}) is None
