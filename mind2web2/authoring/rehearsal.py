"""The rehearsal of a task: its structure, its author's cases, and the trees that are to stay as they are."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from mind2web2.authoring.cases import (
    PERFECT,
    BrokenCase,
    Case,
    CaseOutcome,
    read_case,
    read_cases,
    rehearse_cases,
    written_cases,
)
from mind2web2.authoring.rehearsal_run import (
    WORLD_TIMEOUT_S,
    LoadedScript,
    loaded_script,
)
from mind2web2.authoring.structure import Finding, JudgePrice, Structure, structure_of
from mind2web2.errors import Mind2Web2Error, UsageError
from mind2web2.scripts.aliases import set_script_aliases
from mind2web2.scripts.load import unload_eval_script
from mind2web2.scripts.rubric_file import RUBRIC_SUFFIX
from mind2web2.scripts.rubric_reading import read_rubric
from mind2web2.utils.files import read_regular_file, write_whole

GOLDEN = "golden"


@dataclass(frozen=True)
class RehearsalPlan:
    """A task to be rehearsed.

    Args:
        cases: the folder of the author's cases; it may be missing.
        price: of the judge that is to come.
        aliases: of packages that scripts import, beside those that are built in.
        import_paths: ``sys.path`` of the command, where scripts find their helper modules.
        writes_cases: write variants of the perfect case first.
        writes_golden: keep the cases' trees, to be compared from now on.
        world_timeout_s: the seconds that the script has for one answer.
    """

    task_id: str
    script: Path
    question: str
    cases: Path
    price: JudgePrice
    aliases: Mapping[str, str] = field(default_factory=dict)
    import_paths: tuple[str, ...] = ()
    writes_cases: bool = False
    writes_golden: bool = False
    world_timeout_s: float = WORLD_TIMEOUT_S


@dataclass(frozen=True)
class CaseResult:
    """A case's outcome, as it is shown.

    Args:
        expected: ``None`` where the file cannot be read.
        got: ``None`` where the case has no score.
    """

    name: str
    expected: float | None
    got: float | None
    differs: str | None

    def __str__(self) -> str:
        """Return both scores."""
        expected = "-" if self.expected is None else f"{self.expected:.2f}"
        got = "no score" if self.got is None else f"{self.got:.2f}"
        return f"expected {expected}, got {got}"

    @classmethod
    def of_broken(cls, case: BrokenCase) -> CaseResult:
        """Return the result of a case that was not rehearsed."""
        return cls(case.name, case.expected, None, case.reason)


@dataclass(frozen=True)
class TaskRehearsal:
    """The findings of a task's rehearsal; ``error`` says why there was none."""

    task_id: str
    structure: Structure = field(default_factory=Structure)
    cases: tuple[CaseResult, ...] = ()
    written: tuple[str, ...] = ()
    error: str | None = None

    @property
    def is_incomplete(self) -> bool:
        """Tell whether the task or one of its cases could not be rehearsed."""
        return self.error is not None or any(case.got is None for case in self.cases)

    @property
    def findings(self) -> list[Finding]:
        """Return all that a strict rehearsal does not accept."""
        found = list(self.structure.findings)
        if self.error is not None:
            found.append(Finding("no rehearsal", self.error))
        for case in self.cases:
            if case.differs is not None:
                found.append(Finding("case", f"{case.name}: {case}; {case.differs}"))
        return found

    def as_json(self) -> dict[str, Any]:
        """Return the report as plain data."""
        return {
            "task_id": self.task_id,
            "error": self.error,
            "structure": asdict(self.structure),
            "cases": [asdict(case) for case in self.cases],
            "findings": [asdict(finding) for finding in self.findings],
        }


def rehearse_task(plan: RehearsalPlan) -> TaskRehearsal:
    """Rehearse a task; to be called in a process whose event loop is free."""
    set_script_aliases(plan.aliases)
    sys.path += [path for path in plan.import_paths if path not in sys.path]
    try:
        return asyncio.run(_rehearsal(plan))
    except (Mind2Web2Error, OSError) as error:
        return TaskRehearsal(plan.task_id, error=" ".join(str(error).split()))


async def _rehearsal(plan: RehearsalPlan) -> TaskRehearsal:
    rubric = read_rubric(plan.script).rubric if plan.script.suffix == RUBRIC_SUFFIX else None
    script = await loaded_script(plan.script, plan.world_timeout_s)
    try:
        found = await structure_of(script, plan.question, rubric, plan.price)
        written = await _write_cases(script, plan) if plan.writes_cases else ()
        cases = read_cases(plan.cases)
        outcomes = await rehearse_cases(script, cases)
    finally:
        unload_eval_script(script.evaluate)
    done = [each for each in outcomes if isinstance(each, CaseOutcome)]
    if plan.writes_golden:
        written += tuple(_write_golden(done, plan.cases))
    structure = _judged_by_cases(found, done)
    cases_shown = tuple(_results(outcomes, plan.cases))
    return TaskRehearsal(plan.task_id, structure, cases_shown, written)


def _judged_by_cases(structure: Structure, outcomes: Sequence[CaseOutcome]) -> Structure:
    """Leave out the note on leaves that only a case shows to be true, where a case does."""
    passed = {
        leaf
        for outcome in outcomes
        for leaf, status in outcome.rehearsed.statuses().items()
        if status == "passed"
    }
    unshown = tuple(leaf for leaf in structure.unshown if leaf not in passed)
    return replace(structure, unshown=unshown)


async def _write_cases(script: LoadedScript, plan: RehearsalPlan) -> tuple[str, ...]:
    perfect = _perfect(plan)
    files = await written_cases(script, perfect, plan.cases)
    for path, text in files.items():
        write_whole(path, text)
    return tuple(str(path) for path in files)


def _perfect(plan: RehearsalPlan) -> Case:
    path = plan.cases / f"{PERFECT}.md"
    if not path.is_file():
        raise UsageError(f"no {path} to make variants of: write the perfect answer there")
    return read_case(path)


def _results(outcomes: Sequence[CaseOutcome | BrokenCase], folder: Path) -> Iterator[CaseResult]:
    for outcome in outcomes:
        if isinstance(outcome, BrokenCase):
            yield CaseResult.of_broken(outcome)
            continue
        differs = outcome.differs or _golden_difference(
            outcome, folder / GOLDEN / f"{outcome.name}.json"
        )
        yield CaseResult(outcome.name, outcome.expected, outcome.got, differs)


def _golden(outcome: CaseOutcome) -> dict[str, Any]:
    return {"score": outcome.got, "leaves": outcome.rehearsed.statuses()}


def _write_golden(outcomes: Sequence[CaseOutcome], folder: Path) -> Iterator[str]:
    for outcome in outcomes:
        path = folder / GOLDEN / f"{outcome.name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(_golden(outcome), indent=1) + "\n")
        yield str(path)


def _golden_difference(outcome: CaseOutcome, path: Path) -> str | None:
    """Return the first leaf that differs from the tree that was kept."""
    if not path.is_file():
        return None
    try:
        kept = json.loads(read_regular_file(path))["leaves"]
        now = _golden(outcome)["leaves"]
        names = [*now, *(name for name in kept if name not in now)]
        first = next((name for name in names if kept.get(name) != now.get(name)), None)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{path} is no tree: remove it, or write it again by --write_golden"
        ) from error
    if first is None:
        return None
    return f"{first}: kept {kept.get(first, 'no such leaf')}, now {now.get(first, 'no such leaf')}"
