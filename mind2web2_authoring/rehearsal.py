"""The rehearsal of a task: would this rubric give a right answer 1 and a wrong one 0?"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from mind2web2.plugin import (
    Choices,
    Mind2Web2Error,
    PolicyRun,
    PolicyScript,
    ReadRubric,
    RunSettings,
    Surroundings,
    UsageError,
    YamlFileError,
    text_tokens,
)
from mind2web2_authoring.answers import Answer
from mind2web2_authoring.case_files import written_cases
from mind2web2_authoring.cases import (
    PERFECT,
    Case,
    CaseOutcome,
    answer_of,
    case_paths,
    header_fault,
    read_case,
    rehearse_case,
    truth_of,
)
from mind2web2_authoring.findings import (
    LESS_CERTAIN,
    OFTEN_WRONG,
    Finding,
    by_cause,
    findings_of,
    names_of,
    refusal_of,
)
from mind2web2_authoring.fitting import constants_of, fit_values, is_refused, leaves_failed_by_code
from mind2web2_authoring.places import Places
from mind2web2_authoring.static import text_faults
from mind2web2_authoring.variants import Variants

Verdict = Literal["sound", "faulty", "look at", "cannot tell"]
# The tokens of a question without answer and claim, of a page, and of a reply (runs/estimate.py).
_QUESTION_TOKENS, _PAGE_TOKENS, _OUTPUT_TOKENS = 1000, 4000, 400


@dataclass(frozen=True)
class RehearsalPlan:
    """A task to be rehearsed.

    Args:
        cases: the folder of the author's cases; it may be missing.
        settings: name the judge that is to come.
        surroundings: of the command, for the script.
        runs: run the script; without it, only its text is read.
        writes_cases: write variants of the perfect answer.
        timeout_s: the seconds that the script has for one answer.
    """

    task_id: str
    script: Path
    question: str
    cases: Path
    settings: RunSettings
    surroundings: Surroundings | None = None
    runs: bool = True
    writes_cases: bool = False
    timeout_s: float = 10.0


@dataclass(frozen=True)
class Amounts:
    """The price of one right answer: leaves, judgments, pages and dollars.

    Args:
        cost_usd: ``None`` where the price is not known.
    """

    leaves: int = 0
    judgments: int = 0
    pages: int = 0
    cost_usd: float | None = None


@dataclass(frozen=True)
class TaskRehearsal:
    """The rehearsal of a task.

    Args:
        reason: why the verdict cannot be told.
        is_made_up: there is no perfect answer; values were made up.
        error: why the task or one of its cases was not rehearsed.
        question: the one that agents get.
        program_order: why the script is run in program order, which is slow.
    """

    task_id: str
    verdict: Verdict
    reason: str = ""
    findings: tuple[Finding, ...] = ()
    cases: tuple[CaseOutcome, ...] = ()
    amounts: Amounts = Amounts()
    written: tuple[str, ...] = ()
    error: str | None = None
    question: str = ""
    is_made_up: bool = False
    program_order: str = ""

    @property
    def certain(self) -> tuple[Finding, ...]:
        """Return the findings but those of kinds that are often wrong."""
        return tuple(each for each in self.findings if each.kind not in OFTEN_WRONG)

    def with_cases(self, cases: tuple[CaseOutcome, ...]) -> TaskRehearsal:
        """Return the rehearsal with these outcomes of its cases."""
        findings = [each for each in self.findings if each.kind != "case"]
        is_told = any(each.kind in ("script fails", "right answer fails") for each in findings)
        for case in cases:
            if case.differs is not None and not (is_told and case.name == PERFECT):
                findings.append(Finding("case", f"{case.name}: {case}; {case.differs}"))
        broken = next((case for case in cases if case.got is None), None)
        error = self.error or (None if broken is None else broken.differs)
        verdict = verdict_on(findings, self.reason)
        return replace(self, findings=tuple(findings), cases=cases, error=error, verdict=verdict)


def verdict_on(findings: Sequence[Finding], reason: str) -> Verdict:
    """Return the verdict that follows from findings.

    Args:
        reason: why nothing can be told without any.
    """
    if any(finding.kind not in LESS_CERTAIN for finding in findings):
        return "faulty"
    if findings:
        return "look at"
    return "cannot tell" if reason else "sound"


def rehearse_task(plan: RehearsalPlan) -> TaskRehearsal:
    """Rehearse a task, in a worker that has no event loop."""
    if plan.surroundings is not None:
        plan.surroundings.take_over()
    try:
        faults = text_faults(plan.script)
        if faults:
            findings = tuple(Finding("text", str(each), place=each.place) for each in faults)
            error = str(faults[0])
            return TaskRehearsal(plan.task_id, "faulty", findings=findings, error=error)
        if not plan.runs:
            reason = "its text shows nothing: rehearse it without --no_run"
            return TaskRehearsal(plan.task_id, "cannot tell", reason)
        return asyncio.run(_Rehearsal(plan).report())
    except (Mind2Web2Error, OSError) as error:
        text = " ".join(str(error).split())
        return TaskRehearsal(
            plan.task_id, "faulty", findings=(Finding("script fails", text),), error=text
        )


def _placed(finding: Finding, places: Places) -> Finding:
    """Return a finding with its file and line."""
    if finding.place:
        return finding
    place = (
        places.of_leaf(finding.leaves[0]) if finding.leaves else places.of_error(finding.message)
    )
    return replace(finding, place=place)


def _choices_for(script: Path) -> Choices:
    """Return the numbers of items that a rubric file states; those of scripts are tried."""
    read = ReadRubric.at(script)
    return Choices() if read is None else Choices(counts=read.list_counts())


class _Rehearsal:
    def __init__(self, plan: RehearsalPlan) -> None:
        self._plan = plan
        self._script = PolicyScript(plan.script, plan.timeout_s)
        self._perfect = plan.cases / f"{PERFECT}.md"

    async def report(self) -> TaskRehearsal:
        right, run = await self._right()
        places = Places(self._script, run)
        variants = Variants(self._script, self._plan.question, right, run, places)
        refusal = refusal_of(right, run)
        findings = [] if run.error is not None else await findings_of(variants)
        findings += [refusal] if refusal is not None else []
        reason = "" if variants.is_full or refusal is not None else self._reason(run)
        report = TaskRehearsal(
            self._plan.task_id,
            verdict_on(findings, reason),
            reason,
            tuple(_placed(each, places) for each in by_cause(findings)),
            amounts=self._amounts(right, run),
            error=run.error,
            is_made_up=not right.given,
            program_order=", ".join(run.effects),
        )
        if self._plan.writes_cases:
            report = replace(report, written=await self._write_cases(variants))
        return report.with_cases(await self._outcomes(right, run))

    async def _right(self) -> tuple[Answer, PolicyRun]:
        """Return the answer that deserves 1: the author's, or a made-up one; with its run."""
        case = self._perfect_case()
        if case is not None and case.header.extract:
            asked = answer_of(case, None)
            run = await self._script.run(case.answer, asked)
            if header_fault(case, asked, run) is None:
                plain = Answer(case.answer, given=case.header.extract)
                plain.truth = truth_of(run, asked)
                plain.values, plain.templates = asked.values, asked.templates
                return plain, run
        text = self._plan.question if case is None else case.answer
        answer = Answer(
            f"{text}\n\nhttps://alder.example/urls", choices=_choices_for(self._plan.script)
        )
        run = await self._script.run(answer.text, answer)
        if is_refused(run):
            constants = constants_of(self._script)
            answer, run = await fit_values(self._script, answer, run, constants)
        answer.truth = truth_of(run, answer)
        return answer, run

    def _perfect_case(self) -> Case | None:
        try:
            return read_case(self._perfect) if self._perfect.is_file() else None
        except YamlFileError:
            # The cases' part reports it.
            return None

    def _reason(self, run: PolicyRun) -> str:
        """Return why a rehearsal with made-up values says little."""
        refusing = [leaf.id for leaf in leaves_failed_by_code(run)]
        lost = sum(not leaf.is_passed for leaf in run.leaves)
        if not refusing:
            return ""
        return (
            f"{lost} of {len(run.leaves)} leaves did not pass, since the code of "
            f"{names_of(refusing)} refuses made-up values: write "
            f"{self._perfect.parent.name}/{self._perfect.name}"
        )

    def _amounts(self, right: Answer, run: PolicyRun) -> Amounts:
        votes = [claim.verification.num_trials // 2 + 1 for claim in run.claims]
        questions = sum(votes) + len(run.forms) + run.chats
        pages = {url for claim in run.claims for url in claim.urls[:1]}
        on_pages = sum(vote for vote, claim in zip(votes, run.claims, strict=True) if claim.urls)
        text = text_tokens(right.text) + text_tokens(self._plan.question)
        tokens = questions * (_QUESTION_TOKENS + text) + on_pages * _PAGE_TOKENS
        each = self._plan.settings.price_usd(tokens // max(questions, 1), _OUTPUT_TOKENS)
        cost_usd = None if each is None else each * questions
        return Amounts(len(run.leaves), questions, len(pages), cost_usd)

    async def _write_cases(self, variants: Variants) -> tuple[str, ...]:
        if not self._perfect.is_file():
            raise UsageError(
                f"no {self._perfect} to make variants of: write the perfect answer there"
            )
        return await written_cases(variants, read_case(self._perfect))

    async def _outcomes(self, right: Answer, run: PolicyRun) -> tuple[CaseOutcome, ...]:
        truth = right.truth if right.given and run.error is None else None
        paths = case_paths(self._plan.cases)
        return tuple([await rehearse_case(self._script, path, truth) for path in paths])
