"""The leaf report: what each leaf of a rubric did in stored results; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from mind2web2.analysis.changed_pages import StayedCount
from mind2web2.results.result_file import ResultFile
from mind2web2.rubric.written_tree import WrittenNode
from mind2web2.statistics.items import rest_correlation

# Fewer results say little about a leaf.
ENOUGH_RESULTS = 12
AGAINST_THE_REST = "passes where the rest fails"
_ALWAYS, _NEVER, _UNREACHED = "always passed", "never passed", "never reached"


@dataclass(frozen=True)
class JudgedResult:
    """One result of a task."""

    agent: str
    result: ResultFile


@dataclass(frozen=True)
class LeafRow:
    """One leaf of a task's rubric over all results.

    Args:
        leaf: its id, behind those of the parts that it is in.
        passed: in how many results; ``failed`` and ``skipped`` likewise.
        by_agent: the share of its verdicts that passed, by agent; ``None`` if it was never reached.
        correlation: of its verdict with the other leaves'; see
            ``statistics.items.rest_correlation``.
        notes: what is conspicuous about it.
    """

    task_id: str
    leaf: str
    desc: str
    critical: bool
    passed: int
    failed: int
    skipped: int
    by_agent: Mapping[str, float | None]
    correlation: float | None
    notes: tuple[str, ...]

    @property
    def name(self) -> str:
        """Return its own id, as most rubrics have each id once."""
        return self.leaf.rpartition("/")[2]


@dataclass(frozen=True)
class TaskReport:
    """The leaves of one task.

    Args:
        judges: the models that judged, with the numbers of their results.
    """

    task_id: str
    results: int
    agents: tuple[str, ...]
    judges: Mapping[str, int]
    leaves: tuple[LeafRow, ...]

    @property
    def too_few(self) -> bool:
        """Tell whether there are fewer results than it takes to speak of leaves."""
        return self.results < ENOUGH_RESULTS

    @property
    def warning(self) -> str | None:
        """Return why verdicts cannot be compared."""
        if len(self.judges) < 2:
            return None
        listed = ", ".join(f"{name} ({count})" for name, count in self.judges.items())
        return f"results of different judges are taken together: {listed}"


def task_report(
    task_id: str, results: Sequence[JudgedResult], stayed: Mapping[str, StayedCount]
) -> TaskReport:
    """Return the report on a task.

    Args:
        stayed: verdicts that stayed on changed pages, by ``task/leaf``.
    """
    trees = [dict(_paths(each.result)) for each in results]
    shares = [_share_passed(tree) for tree in trees]
    rows = []
    for path in dict.fromkeys(path for tree in trees for path in tree):
        column = [tree.get(path) for tree in trees]
        row = _row(task_id, path, column, shares, results)
        count = stayed.get(f"{task_id}/{row.name}")
        notes = () if count is None or not count.stayed else (str(count),)
        rows.append(_with_notes(row, notes, is_enough=len(results) >= ENOUGH_RESULTS))
    judges = Counter(each.result.judge_model for each in results if each.result.judge_model)
    agents = tuple(dict.fromkeys(each.agent for each in results))
    return TaskReport(task_id, len(results), agents, dict(sorted(judges.items())), tuple(rows))


def _paths(result: ResultFile) -> Iterator[tuple[str, WrittenNode]]:
    """Yield the leaves by their paths. A path that occurs again gets a number."""
    seen: Counter[str] = Counter()
    for tree in result.trees:
        for leaf, path, _ in tree.leaf_places():
            seen[path] += 1
            yield path if seen[path] == 1 else f"{path} ({seen[path]})", leaf


# The number of leaves of a result, and how many of them passed.
_Share = tuple[int, int]


def _share_passed(tree: Mapping[str, WrittenNode]) -> _Share:
    return len(tree), sum(leaf.is_passed for leaf in tree.values())


def _verdict(leaf: WrittenNode | None) -> bool | None:
    """Return whether a leaf passed, ``None`` where it was not decided."""
    if leaf is None or leaf.verdict.status not in ("passed", "failed"):
        return None
    return leaf.is_passed


def _row(
    task_id: str,
    path: str,
    column: Sequence[WrittenNode | None],
    shares: Sequence[_Share],
    results: Sequence[JudgedResult],
) -> LeafRow:
    verdicts = [_verdict(leaf) for leaf in column]
    rests = []
    for verdict, (count, passed) in zip(verdicts, shares, strict=True):
        others = max(count - 1, 1)
        rests.append((passed - bool(verdict)) / others)
    by_agent: dict[str, list[bool]] = {each.agent: [] for each in results}
    for each, verdict in zip(results, verdicts, strict=True):
        if verdict is not None:
            by_agent[each.agent].append(verdict)
    first = next(filter(None, column))
    skipped = sum(leaf is not None and leaf.verdict.status == "skipped" for leaf in column)
    return LeafRow(
        task_id,
        path,
        first.desc,
        first.critical,
        passed=verdicts.count(True),
        failed=verdicts.count(False),
        skipped=skipped,
        by_agent={
            name: sum(verdicts_of_agent) / len(verdicts_of_agent) if verdicts_of_agent else None
            for name, verdicts_of_agent in by_agent.items()
        },
        correlation=rest_correlation(verdicts, rests),
        notes=(),
    )


def _with_notes(row: LeafRow, notes: tuple[str, ...], *, is_enough: bool) -> LeafRow:
    if not is_enough:
        return replace(row, notes=notes)
    remarks: list[str] = []
    if not row.passed + row.failed:
        remarks.append(_UNREACHED)
    elif not row.failed:
        remarks.append(_ALWAYS)
    elif not row.passed:
        remarks.append(_NEVER)
    if row.correlation is not None and row.correlation < 0:
        remarks.append(AGAINST_THE_REST)
    return replace(row, notes=(*remarks, *notes))
