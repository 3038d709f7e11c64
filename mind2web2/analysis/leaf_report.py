"""The leaf report: what each leaf of a rubric did in all stored results."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mind2web2.analysis.changed_pages import StayedCount, changed_pages, stayed_by_leaf
from mind2web2.results.claim_facts import claim_facts, is_claim, vote_groups
from mind2web2.results.result_file import ResultFile
from mind2web2.results.stored_results import latest_results
from mind2web2.rubric.rescoring import Rescoring
from mind2web2.rubric.verdicts import Outcome
from mind2web2.rubric.written_tree import WrittenNode
from mind2web2.statistics.items import (
    ENOUGH_RESULTS,
    ItemCounts,
    Label,
    TaskFigures,
    Verdict,
    counts_of,
    labels_of,
    rest_correlation,
    task_figures,
    twins,
)
from mind2web2.utils.text import counted

_STATUSES: dict[str, Verdict] = {
    "passed": "passed",
    "failed": "failed",
    "skipped": "skipped",
}
_OTHER_VERDICTS = {
    "passed": Outcome(0.0, "failed"),
    "failed": Outcome(1.0, "passed"),
}
_THIRDS = ("first third", "second third", "last third")
_MOST_PAGES = 4


@dataclass(frozen=True)
class JudgedResult:
    """One result of a task."""

    agent: str
    answer_name: str
    result: ResultFile


@dataclass(frozen=True)
class LeafRow:
    """One leaf of a task's rubric over all results.

    Args:
        leaf: its id, behind those of the parts that it is in.
        correlation: of its verdict with the other leaves'; see ``statistics.items.rest_correlation``.
        judged: results in which a judge decided it.
        with_page: of these, how many on a page.
        split: how many with votes that differ.
        quotes_missing: how many with a quotation that was not found.
        judgments: the judge's replies for it.
        cost_usd: their part of the answers' costs; ``None`` where a price is unknown.
        stayed: verdicts that stayed on changed pages; ``None`` if none was asked about.
    """

    leaf: str
    desc: str
    critical: bool
    counts: ItemCounts
    labels: tuple[Label, ...]
    correlation: float | None
    judged: int
    with_page: int
    split: int
    quotes_missing: int
    judgments: int
    cost_usd: float | None
    stayed: StayedCount | None

    @property
    def name(self) -> str:
        """Return its own id, as most rubrics have each id once."""
        return self.leaf.rpartition("/")[2]


@dataclass(frozen=True)
class Share:
    """How many of some judged leaves passed."""

    passed: int
    of: int


@dataclass(frozen=True)
class TaskReport:
    """The leaves of one task.

    Args:
        judges: the models that judged, with the numbers of their results.
        too_few: there are fewer results than it takes to speak of leaves.
        twins: leaves with the same verdict in every result.
        by_pages: judged leaves by the number of pages that they cite.
        by_position: judged leaves by the third of the rubric that they stand in.
    """

    task_id: str
    results: int
    agents: tuple[str, ...]
    judges: Mapping[str, int]
    too_few: bool
    leaves: tuple[LeafRow, ...]
    twins: tuple[tuple[str, ...], ...]
    by_pages: Mapping[str, Share]
    by_position: Mapping[str, Share]
    figures: TaskFigures

    @property
    def warning(self) -> str | None:
        """Return what keeps verdicts from being comparable."""
        if len(self.judges) < 2:
            return None
        listed = ", ".join(f"{name} ({count})" for name, count in self.judges.items())
        return f"results of different judges are taken together: {listed}"


@dataclass(frozen=True)
class LeafReport:
    """All tasks, and what the verdicts of all have to do with pages and places."""

    tasks: tuple[TaskReport, ...]
    by_pages: Mapping[str, Share]
    by_position: Mapping[str, Share]


def stored_results(
    root: Path,
    agents: Iterable[str],
    task_ids: Sequence[str] | None,
    judge: str | None = None,
) -> dict[str, list[JudgedResult]]:
    """Return the newest results of agents by task.

    Args:
        judge: the model that judged; ``None`` for any.
    """
    found: dict[str, list[JudgedResult]] = defaultdict(list)
    for agent in agents:
        for task_id, answer_name, loaded in latest_results(root, agent):
            if task_ids is not None and task_id not in task_ids:
                continue
            if judge is None or loaded.content.judge_model == judge:
                found[task_id].append(JudgedResult(agent, answer_name, loaded.content))
    return dict(found)


def leaf_report(results: Mapping[str, Sequence[JudgedResult]]) -> LeafReport:
    """Return the report on results by task."""
    scores = {task_id: _scores(found) for task_id, found in results.items()}
    figures = task_figures({task_id: agents for task_id, agents in scores.items() if agents})
    stayed = _stayed([each for found in results.values() for each in found])
    tasks = [
        task_report(task_id, found, figures.get(task_id), stayed)
        for task_id, found in results.items()
    ]
    return report_of(tasks)


def _stayed(results: Iterable[JudgedResult]) -> dict[str, StayedCount]:
    """Return how many verdicts on each leaf stayed on changed pages, by the judges of these results."""
    agents, judges = set(), set()
    for each in results:
        agents.add(each.agent)
        judges.add(each.result.judge_model or "")
    reports = [report for agent in sorted(agents) for report in changed_pages(agent)]
    return stayed_by_leaf(reports, judges)


def report_of(tasks: Sequence[TaskReport]) -> LeafReport:
    """Return the report on all of some tasks."""
    return LeafReport(
        tuple(tasks),
        _together([task.by_pages for task in tasks]),
        _together([task.by_position for task in tasks]),
    )


def _shares(
    found: Sequence[JudgedResult],
) -> tuple[dict[str, Share], dict[str, Share]]:
    """Return the judged leaves by pages, and by position."""
    pages: dict[str, list[bool]] = defaultdict(list)
    positions: dict[str, list[bool]] = defaultdict(list)
    for each in found:
        leaves = list(each.result.leaves())
        for number, leaf in enumerate(leaves):
            if not is_claim(leaf) or leaf.evidence is None:
                continue
            third = _THIRDS[3 * number // len(leaves)]
            passed = leaf.verdict.status == "passed"
            pages[_page_group(len(leaf.evidence.pages))].append(passed)
            positions[third].append(passed)
    return _counted(pages), _counted(positions)


def _counted(groups: Mapping[str, Sequence[bool]]) -> dict[str, Share]:
    names = sorted(groups, key=_group_order)
    return {name: Share(sum(groups[name]), len(groups[name])) for name in names}


def _group_order(name: str) -> tuple[int, str]:
    """Return what groups of leaves are sorted by: thirds of the rubric as they follow each other."""
    third = _THIRDS.index(name) if name in _THIRDS else 0
    return third, name


def _together(parts: Sequence[Mapping[str, Share]]) -> dict[str, Share]:
    shares: dict[str, list[Share]] = defaultdict(list)
    for part in parts:
        for name, share in part.items():
            shares[name].append(share)
    found = {}
    for name in sorted(shares, key=_group_order):
        passed = sum(share.passed for share in shares[name])
        of = sum(share.of for share in shares[name])
        found[name] = Share(passed, of)
    return found


def _scores(found: Sequence[JudgedResult]) -> dict[str, list[float]]:
    by_agent: dict[str, list[float]] = defaultdict(list)
    for each in found:
        if each.result.final_score is not None:
            by_agent[each.agent].append(each.result.final_score)
    return dict(by_agent)


def _page_group(pages: int) -> str:
    if pages >= _MOST_PAGES:
        return f"{_MOST_PAGES} pages or more"
    return counted(pages, "page") if pages else "no page"


def task_report(
    task_id: str,
    found: Sequence[JudgedResult],
    figures: TaskFigures | None,
    stayed: Mapping[str, StayedCount],
) -> TaskReport:
    """Return the report on a task.

    Args:
        figures: of the task among all tasks; ``None`` where it has no scores.
        stayed: verdicts that stayed on changed pages, by ``task/leaf``.
    """
    trees = [dict(_paths(each.result)) for each in found]
    # By their ids in memory: each result has its own leaves.
    matter = set[int]().union(*(_matter(each.result) for each in found))
    paths = list(dict.fromkeys(path for tree in trees for path in tree))
    columns = {path: [tree.get(path) for tree in trees] for path in paths}
    table = {path: list(map(_verdict, leaves)) for path, leaves in columns.items()}
    rests = _rests(table, len(found))
    rows = []
    for path, leaves in columns.items():
        decided = [leaf for leaf in leaves if _verdict(leaf) in ("passed", "failed")]
        matters = [id(leaf) in matter for leaf in decided]
        own = stayed.get(f"{task_id}/{path.rpartition('/')[2]}")
        rows.append(_row(path, leaves, table[path], rests[path], matters, found, own))
    by_pages, by_position = _shares(found)
    judges = Counter(each.result.judge_model for each in found if each.result.judge_model)
    return TaskReport(
        task_id=task_id,
        results=len(found),
        agents=tuple(dict.fromkeys(each.agent for each in found)),
        judges=dict(sorted(judges.items())),
        too_few=len(found) < ENOUGH_RESULTS,
        leaves=tuple(rows),
        twins=tuple(twins(table)),
        by_pages=by_pages,
        by_position=by_position,
        figures=figures or TaskFigures(False, None, None),
    )


def _row(
    path: str,
    leaves: Sequence[WrittenNode | None],
    verdicts: Sequence[Verdict],
    rest: Sequence[float],
    matters: Sequence[bool],
    found: Sequence[JudgedResult],
    stayed: StayedCount | None,
) -> LeafRow:
    counts = counts_of(verdicts)
    there = [
        (leaf, each.result) for leaf, each in zip(leaves, found, strict=True) if leaf is not None
    ]
    judged = [
        leaf
        for leaf, _ in there
        if leaf.evidence is not None and leaf.evidence.decided_by == "judge"
    ]
    facts = [claim_facts(leaf) for leaf in judged]
    first = there[0][0]
    costs = [_cost(leaf, result) for leaf, result in there]
    known_costs = [cost for cost in costs if cost is not None]
    return LeafRow(
        leaf=path,
        desc=first.desc,
        critical=first.critical,
        counts=counts,
        labels=tuple(labels_of(counts, matters)),
        correlation=rest_correlation(_passed(verdicts), rest),
        judged=len(judged),
        with_page=sum(bool(leaf.evidence and leaf.evidence.pages) for leaf in judged),
        split=sum(fact.is_split for fact in facts),
        quotes_missing=sum("not_found" in fact.quotes for fact in facts),
        judgments=sum(map(_votes, judged)),
        cost_usd=sum(known_costs) if len(known_costs) == len(costs) else None,
        stayed=stayed,
    )


def _paths(result: ResultFile) -> Iterator[tuple[str, WrittenNode]]:
    """Yield the leaves with the ids from below the root to them; a path that occurs again gets a number."""
    seen: dict[str, int] = defaultdict(int)
    for tree in result.trees:
        tops = tree.children or (tree,)
        stack = [(top, top.id) for top in reversed(tops)]
        while stack:
            node, path = stack.pop()
            if not node.children:
                seen[path] += 1
                yield path if seen[path] == 1 else f"{path} ({seen[path]})", node
            for child in reversed(node.children):
                stack.append((child, f"{path}/{child.id}"))


def _verdict(leaf: WrittenNode | None) -> Verdict:
    if leaf is None:
        return "absent"
    return _STATUSES.get(leaf.verdict.status, "undecided")


def _matter(result: ResultFile) -> set[int]:
    """Return the leaves, by ``id``, whose other verdict would have changed the score."""
    tree = result.sound_tree
    if tree is None:
        return set()
    rescoring = Rescoring(tree)
    score = rescoring.score
    found = set()
    for leaf in tree.leaves():
        other = _OTHER_VERDICTS.get(leaf.verdict.status)
        if other is None:
            continue
        if rescoring.score_with({id(leaf): other}) != score:
            found.add(id(leaf))
    return found


def _passed(verdicts: Sequence[Verdict]) -> list[bool | None]:
    return [
        verdict == "passed" if verdict in ("passed", "failed") else None for verdict in verdicts
    ]


def _rests(table: Mapping[str, Sequence[Verdict]], results: int) -> dict[str, list[float]]:
    """Return, for each leaf and result, the share of the other leaves that passed."""
    by_result = [
        Counter(verdicts[position] for verdicts in table.values()) for position in range(results)
    ]
    rests = {}
    for path, verdicts in table.items():
        shares = []
        for verdict, counts in zip(verdicts, by_result, strict=True):
            others = counts.total() - counts["absent"] - (verdict != "absent")
            others_passed = counts["passed"] - (verdict == "passed")
            shares.append(others_passed / others if others else 0.0)
        rests[path] = shares
    return rests


def _votes(leaf: WrittenNode) -> int:
    if leaf.evidence is None:
        return 0
    return sum(len(votes) for votes in vote_groups(leaf.evidence))


def _cost(leaf: WrittenNode, result: ResultFile) -> float | None:
    """Return a leaf's part of an answer's cost, by judgments."""
    votes, usage = _votes(leaf), result.judge_usage
    if not votes:
        return 0.0
    if usage is None or usage.cost_usd is None or not usage.judgments:
        return None
    return usage.cost_usd * votes / usage.judgments
