"""Figures beside the score: by tag of leaves, by domain of tasks, and the weighted score."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from mind2web2.results.agent_summary import TaskFigures
from mind2web2.results.result_file import ResultFile
from mind2web2.rubric.written_tree import WrittenNode

Results = Mapping[tuple[str, str], ResultFile]


@dataclass(frozen=True)
class TagFigure:
    """The leaves of a tag.

    Args:
        passed: the share of an answer's leaves that passed, averaged over a task's answers, then over tasks.
        leaves: in all answers together.
    """

    tag: str
    passed: float
    leaves: int
    answers: int
    tasks: int


def tag_figures(results: Results) -> list[TagFigure]:
    """Return the figures of all tags by name.

    A node's tags hold for all leaves below it; skipped leaves count as not passed.
    """
    shares: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    leaves: dict[str, int] = defaultdict(int)
    for (task_id, _), result in sorted(results.items()):
        for tag, passed in _leaves_by_tag(result).items():
            shares[tag][task_id].append(fmean(passed))
            leaves[tag] += len(passed)
    figures = []
    for tag, tasks in sorted(shares.items()):
        task_means = [fmean(answers) for answers in tasks.values()]
        answer_counts = [len(answers) for answers in tasks.values()]
        figure = TagFigure(
            tag,
            passed=fmean(task_means),
            leaves=leaves[tag],
            answers=sum(answer_counts),
            tasks=len(tasks),
        )
        figures.append(figure)
    return figures


def _leaves_by_tag(result: ResultFile) -> dict[str, list[bool]]:
    found: dict[str, list[bool]] = defaultdict(list)
    for tree in result.trees:
        for leaf, tags in _tagged(tree, ()):
            for tag in tags:
                found[tag].append(leaf.status == "passed")
    return found


def _tagged(root: WrittenNode, above: Sequence[str]) -> Iterator[tuple[WrittenNode, set[str]]]:
    stack = [(root, set(above))]
    while stack:
        node, inherited = stack.pop()
        tags = inherited.union(node.tags)
        if not node.children:
            yield node, tags
        stack.extend((child, tags) for child in node.children)


@dataclass(frozen=True)
class DomainFigure:
    """The tasks of a domain: the mean of their scores, and the share that passed in any run."""

    domain: str
    avg_score: float
    pass_at_k: float
    tasks: int


def domain_figures(
    tasks: Mapping[str, TaskFigures], domains: Mapping[str, str]
) -> list[DomainFigure]:
    """Return the figures of all domains by name, over the tasks that have a score."""
    by_domain: dict[str, list[TaskFigures]] = defaultdict(list)
    for task_id, figures in tasks.items():
        if figures.avg_score is not None and domains.get(task_id):
            by_domain[domains[task_id]].append(figures)
    return [
        DomainFigure(
            domain,
            avg_score=round(fmean(each.avg_score or 0.0 for each in own), 6),
            pass_at_k=round(fmean(each.is_passed for each in own), 4),
            tasks=len(own),
        )
        for domain, own in sorted(by_domain.items())
    ]


def weighted_figure(results: Results) -> tuple[float, int] | None:
    """Return the mean weighted score over tasks, and the number of answers.

    ``None`` where no leaf has a weight.
    """
    scores: dict[str, list[float]] = defaultdict(list)
    for (task_id, _), result in results.items():
        if result.weighted_score is not None:
            scores[task_id].append(result.weighted_score)
    if not scores:
        return None
    return fmean(map(fmean, scores.values())), sum(map(len, scores.values()))
