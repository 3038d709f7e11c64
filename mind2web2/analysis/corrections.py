"""The corrected score of an agent.

It rests on whole answers that people labelled, or else on those that a strong judge judged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean

from pydantic import BaseModel, ConfigDict, ValidationError

from mind2web2.analysis.audited import AuditedAnswer, audited_answers, label_verdicts
from mind2web2.analysis.correction_record import (
    DIGITS,
    SAMPLE_NAME,
    CorrectionFigures,
    CorrectionRoots,
    Ends,
)
from mind2web2.analysis.labelled_answers import LabelledScore, score_by_labels
from mind2web2.analysis.labels import LabelFile, auditors
from mind2web2.analysis.sample_basis import (
    AnswerBasis,
    AnswerName,
    SampledFrom,
    difference,
    listed_differences,
)
from mind2web2.errors import UsageError
from mind2web2.results.stored_results import latest_results, write_file
from mind2web2.statistics.agreement import Cells, figures_of
from mind2web2.statistics.correction import (
    CorrectedDifference,
    CorrectedMean,
    corrected_difference,
)
from mind2web2.statistics.paired import Estimate, share_difference
from mind2web2.statistics.sampled_answers import (
    JudgedTwice,
    correct_by_answers,
    sampling_order,
)
from mind2web2.statistics.uncertainty import Interval
from mind2web2.utils.files import read_regular_file
from mind2web2.utils.program import program
from mind2web2.utils.text import counted

# People make mistakes as well: the figure shows what so many wrong labels do.
WRONG_LABELS = 0.05
# Auditors take answers in one order, so that their labels are of the same answers.
_AUDIT_SEED = 0


def population_of(answers: Sequence[AuditedAnswer], seed: int = _AUDIT_SEED) -> SampledFrom:
    """Return all these answers in the order in which a sample takes them."""
    basis = {one.name: one.basis for one in answers}
    order = sampling_order([*basis], seed)
    return SampledFrom(order=tuple(order), basis=tuple(basis[name] for name in order))


class SampleRecord(SampledFrom):
    """A strong judge's sample of an agent's answers, ``rejudged/<judge>/1/<agent>/sample.json``.

    Args:
        size: how many are in the sample.
        target: the reach at which the sample was to end; ``None`` where its size was chosen.
    """

    judge: str
    seed: int
    created: str
    size: int
    target: float | None = None

    @classmethod
    def made_now(
        cls,
        judge: str,
        seed: int,
        population: SampledFrom,
        size: int,
        target: float | None = None,
    ) -> SampleRecord:
        """Return the record of a sample that is drawn now."""
        return cls(
            order=population.order,
            basis=population.basis,
            judge=judge,
            seed=seed,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            size=size,
            target=target,
        )

    def write(self, agent_folder: Path) -> None:
        """Write it beside the strong judge's results.

        Raises ResultWriteError: it cannot be written.
        """
        agent_folder.mkdir(parents=True, exist_ok=True)
        write_file(agent_folder / SAMPLE_NAME, self.model_dump_json(indent=2) + "\n")


@dataclass(frozen=True, slots=True)
class Correction:
    """An agent's score, corrected by whole answers that people labelled or a strong judge judged.

    Args:
        by: who corrects.
        low: with leaves that nobody decides as not supported, and ``high`` with these as supported.
        weight: of the judge's scores.
        cells: the verdicts of the judge and of who corrects, by task.
        wrong_labels: what the score changes by if ``WRONG_LABELS`` of the labels are wrong.
    """

    by: str
    mean: CorrectedMean
    low: CorrectedMean
    high: CorrectedMean
    weight: float
    cells: Mapping[str, Cells]
    wrong_labels: float | None = None

    @property
    def value(self) -> float | None:
        """Return the corrected score, ``None`` where the sample has too few tasks."""
        return self.mean.estimate if self.mean.is_enough else None

    @property
    def these_tasks(self) -> Interval | None:
        """Return the interval of the score that the whole sample frame would give."""
        return _span(self.low.these_tasks, self.high.these_tasks)

    @property
    def tasks_at_large(self) -> Interval | None:
        """Return the interval of that score over all tasks of the kind."""
        return _span(self.low.tasks_at_large, self.high.tasks_at_large)

    def figures(self) -> CorrectionFigures:
        """Return it as it is published."""
        value = self.value
        extremes = None
        if self.low is not self.high:
            extremes = (
                round(self.low.estimate, DIGITS),
                round(self.high.estimate, DIGITS),
            )
        if_wrong = None
        if self.wrong_labels is not None and value is not None:
            if_wrong = round(min(1.0, max(0.0, value + self.wrong_labels)), DIGITS)
        return CorrectionFigures(
            by=self.by,
            raw=round(self.mean.raw, DIGITS),
            corrected=None if value is None else round(value, DIGITS),
            these_tasks=Ends.of(self.these_tasks),
            tasks_at_large=Ends.of(self.tasks_at_large),
            sampled=self.mean.labels,
            of=self.mean.population,
            to_halve=self.mean.to_halve if self.mean.is_enough else None,
            weight_of_judge=round(self.weight, 4),
            if_undecidable=extremes,
            if_labels_are_wrong=if_wrong,
        )


def _span(low: Interval | None, high: Interval | None) -> Interval | None:
    """Return the interval from the low end of one to the high end of the other."""
    if low is None or high is None:
        return None
    return Interval(low.low, high.high)


@dataclass(frozen=True, slots=True)
class NoCorrection:
    """Labels or a sample that exist, but do not correct an agent's score.

    Args:
        by: who would correct.
        raw: the score by the judge.
        of: the number of answers.
        reason: why not, and what to do.
    """

    by: str
    raw: float
    of: int
    reason: str

    @classmethod
    def for_reason(cls, by: str, answers: Sequence[AuditedAnswer], reason: str) -> NoCorrection:
        """Return it for these answers."""
        scores: dict[str, list[float]] = defaultdict(list)
        for one in answers:
            scores[one.task].append(one.score)
        return cls(by, fmean(map(fmean, scores.values())), len(answers), reason)

    def figures(self) -> CorrectionFigures:
        """Return it as it is published."""
        raw = round(self.raw, DIGITS)
        return CorrectionFigures(by=self.by, raw=raw, of=self.of, reason=self.reason)


def correction_of(
    roots: CorrectionRoots, agent: str, tasks: Collection[str] | None = None
) -> Correction | NoCorrection | None:
    """Return the corrected score over some tasks.

    It is ``None`` without labels and without a strong sample.

    Labels of people count before a strong judge, as far as they are enough for any statement.
    """
    names = auditors(roots.audits, agent)
    samples = _sample_folders(roots.rejudged, agent)
    if not names and not samples:
        return None
    answers = audited_answers(roots.eval_results, agent, tasks)
    if not answers:
        return None
    found = [correction_by_labels(answers, roots.audits, agent)]
    found += [correction_by_sample(answers, folder, agent) for folder in samples]
    corrections = [one for one in found if isinstance(one, Correction)]
    enough = [one for one in corrections if one.mean.is_enough]
    # A reason says what to do; a sample that is too small does not.
    reasons = [one for one in found if isinstance(one, NoCorrection)]
    in_order: list[Correction | NoCorrection] = [*enough, *reasons, *corrections]
    return in_order[0] if in_order else None


# By labels of people


@dataclass(frozen=True, slots=True)
class LabelledAnswers:
    """The whole answers that auditors labelled, which are a sample of all answers.

    Args:
        by: the auditors.
        scores: by the labels; empty if the labels are not a sample.
        reason: why they correct nothing, ``None`` where they do.
    """

    by: str
    scores: Mapping[AnswerName, LabelledScore]
    reason: str | None = None


def labelled_answers(
    answers: Sequence[AuditedAnswer], audits: Path, agent: str
) -> LabelledAnswers | None:
    """Return the answers that people labelled as a whole.

    The result is ``None`` where nobody has labelled any leaf.
    """
    files = {name: LabelFile(audits, agent, name) for name in auditors(audits, agent)}
    labels = {name: file.blind() for name, file in files.items()}
    if not any(labels.values()):
        return None
    by = f"labels of {', '.join(name for name, own in labels.items() if own)}"
    go_on = f"go on with `{program()} view {agent} --audit {next(iter(files))}`"
    populations = [one for file in files.values() if (one := file.sampled_from()) is not None]
    if not populations:
        reason = f"the labels are of single leaves, and count for agreement alone: {go_on}"
        return LabelledAnswers(by, {}, reason)
    now = _basis_of(answers)
    changes = [one.describe_changes(now) for one in populations]
    if None not in changes:
        return LabelledAnswers(by, {}, f"{changes[0]}: {go_on}")
    order = populations[changes.index(None)].order
    verdicts = label_verdicts(answers, [*labels.values()])
    by_name = {one.name: one for one in answers}
    scores: dict[AnswerName, LabelledScore] = {}
    for name in order:
        if name not in by_name:
            continue
        score = score_by_labels(by_name[name], verdicts)
        if score is None:
            break
        scores[name] = score
    if not scores:
        reason = f"no answer has labels of all its leaves: {go_on}"
        return LabelledAnswers(by, {}, reason)
    return LabelledAnswers(by, scores)


def correction_by_labels(
    answers: Sequence[AuditedAnswer], audits: Path, agent: str
) -> Correction | NoCorrection | None:
    """Return the score corrected by whole answers that people labelled; ``None`` without labels."""
    found = labelled_answers(answers, audits, agent)
    if found is None:
        return None
    if found.reason is not None:
        return NoCorrection.for_reason(found.by, answers, found.reason)
    scores = found.scores
    mean, weight = _correct_mean(answers, {name: one.middle for name, one in scores.items()})
    low = high = mean
    if any(one.low != one.high for one in scores.values()):
        low, _ = _correct_mean(answers, {name: one.low for name, one in scores.items()})
        high, _ = _correct_mean(answers, {name: one.high for name, one in scores.items()})
    changes: dict[str, list[float]] = defaultdict(list)
    for (task, _), one in scores.items():
        changes[task].append(WRONG_LABELS * one.if_all_wrong)
    on = f"on {mean.labels} of {counted(mean.population, 'answer')}"
    return Correction(
        by=f"{found.by} {on}",
        mean=mean,
        low=low,
        high=high,
        weight=weight,
        cells=_cells_by_labels(answers, audits, agent),
        wrong_labels=fmean(map(fmean, changes.values())),
    )


def _correct_mean(
    answers: Sequence[AuditedAnswer], exact: Mapping[AnswerName, float]
) -> tuple[CorrectedMean, float]:
    twice = [JudgedTwice(one.task, one.score, exact.get(one.name)) for one in answers]
    return correct_by_answers(twice)


def _basis_of(answers: Iterable[AuditedAnswer]) -> dict[AnswerName, AnswerBasis | None]:
    return {one.name: one.basis for one in answers}


def _cells_by_labels(
    answers: Sequence[AuditedAnswer], audits: Path, agent: str
) -> dict[str, Cells]:
    labels = [LabelFile(audits, agent, name).blind() for name in auditors(audits, agent)]
    passes = label_verdicts(answers, labels).passes
    found: dict[str, Cells] = {}
    for answer in answers:
        for leaf in answer.leaves:
            if leaf.name in passes and not leaf.is_skipped:
                found.setdefault(answer.task, Cells()).add(leaf.passed, passes[leaf.name])
    return found


# By a strong judge


def _sample_folders(rejudged_root: Path, agent: str) -> list[Path]:
    """Return strong judges' result folders that have a sample of an agent, newest first."""
    dated = []
    for path in rejudged_root.glob(f"*/1/*/{SAMPLE_NAME}"):
        record = read_sample(path.parent)
        if path.parent.name == agent and record is not None:
            dated.append((record.created, path.parent.parent))
    return [folder for _, folder in sorted(dated, reverse=True)]


def read_sample(agent_folder: Path) -> SampleRecord | None:
    """Return the record of a sample, ``None`` where there is none that can be read."""
    try:
        return SampleRecord.model_validate_json(read_regular_file(agent_folder / SAMPLE_NAME))
    except (OSError, ValidationError):
        return None


def correction_by_sample(
    answers: Sequence[AuditedAnswer], folder: Path, agent: str
) -> Correction | NoCorrection | None:
    """Return the score corrected by a strong judge's sample; ``None`` where no answer is in it.

    There is no correction if the sample is not a random one of these answers as they are now.

    Args:
        folder: the results root of the strong judge.
    """
    record = read_sample(folder / agent)
    if record is None:
        return None
    drawn = set(record.order[: record.size])
    if not any(one.name in drawn for one in answers):
        return None
    strong = {one.name: one for one in audited_answers(folder, agent) if one.name in drawn}
    sampled = [(one, strong[one.name]) for one in answers if one.name in strong]
    reason = _not_random(answers, record, sampled)
    if reason is not None:
        repeat = f"`{program()} rejudge {agent} --judge_model STRONG --sample N`"
        return NoCorrection.for_reason(record.judge, answers, f"{reason} repeat {repeat}")
    exact = {name: one.score for name, one in strong.items()}
    mean, weight = _correct_mean(answers, exact)
    if record.target is not None and mean.labels < mean.population:
        mean = replace(mean, least_reach=record.target)
    return Correction(
        by=f"{record.judge} on {mean.labels} of {counted(mean.population, 'answer')}",
        mean=mean,
        low=mean,
        high=mean,
        weight=weight,
        cells=_cells(sampled),
    )


def _not_random(
    answers: Sequence[AuditedAnswer],
    record: SampleRecord,
    sampled: Sequence[tuple[AuditedAnswer, AuditedAnswer]],
) -> str | None:
    """Return why a sample is not random for today's answers, or ``None`` if it is.

    The command to repeat follows the reason.
    """
    changed = record.describe_changes(_basis_of(answers))
    if changed is not None:
        return f"{changed}:"
    drawn = set(record.order[: record.size])
    size = sum(one.name in drawn for one in answers)
    if len(sampled) < size:
        of_sample = f"of {counted(size, 'sampled answer')}"
        return f"{size - len(sampled)} {of_sample} have no score by {record.judge}:"
    outdated = listed_differences(
        ((one.name, difference(one.basis, other.basis)) for one, other in sampled), size
    )
    if outdated is None:
        return None
    return f"by {record.judge}, {outdated}: evaluate results that are out of date, then"


def _cells(pairs: Iterable[tuple[AuditedAnswer, AuditedAnswer]]) -> dict[str, Cells]:
    found: dict[str, Cells] = {}
    for one, other in pairs:
        strong = {leaf.name: leaf.passed for leaf in other.leaves if not leaf.is_skipped}
        for leaf in one.leaves:
            if leaf.name in strong and not leaf.is_skipped:
                found.setdefault(one.task, Cells()).add(leaf.passed, float(strong[leaf.name]))
    return found


def cost_of_sample(folder: Path, agent: str, names: Collection[AnswerName]) -> float | None:
    """Return what a judge's results of some answers have cost in dollars.

    The cost is ``None`` where it is unknown.
    """
    usages = [
        found.content.judge_usage
        for task, answer, found in latest_results(folder, agent)
        if (task, answer.removesuffix(".md")) in names
    ]
    costs = [None if usage is None else usage.cost_usd for usage in usages]
    known = [cost for cost in costs if cost is not None]
    if known and len(known) == len(costs):
        return sum(known)
    return None


# Two agents


class CorrectedPair(BaseModel):
    """Two agents' corrected scores over the same tasks; ``compare --corrected --json`` prints it.

    Differences are the second minus the first.

    Args:
        wrong_passes: the difference of the judge's error rates by agent: a bias that could turn a
            ranking.
    """

    model_config = ConfigDict(frozen=True)

    agents: tuple[str, str]
    first: CorrectionFigures
    second: CorrectionFigures
    raw_difference: float
    corrected_difference: float | None
    these_tasks: Ends | None
    tasks_at_large: Ends | None
    wrong_passes: Estimate
    wrong_failures: Estimate


def corrected_pair(agents: tuple[str, str], first: Correction, second: Correction) -> CorrectedPair:
    """Compare two agents. Raises ValueError: their tasks differ."""
    one, other = figures_of(first.cells), figures_of(second.cells)
    found = _difference(first, second)
    value = found.value
    return CorrectedPair(
        agents=agents,
        first=first.figures(),
        second=second.figures(),
        raw_difference=round(found.raw, DIGITS),
        corrected_difference=None if value is None else round(value, DIGITS),
        these_tasks=Ends.of(found.these_tasks),
        tasks_at_large=Ends.of(found.tasks_at_large),
        wrong_passes=share_difference(one.wrong_passes, other.wrong_passes),
        wrong_failures=share_difference(one.wrong_failures, other.wrong_failures),
    )


def corrected_pairs(
    roots: CorrectionRoots, folders: Mapping[str, Path], tasks: Collection[str]
) -> list[CorrectedPair]:
    """Return the corrected comparison of the first agent with each other one.

    Args:
        roots: of the command; each agent has results of its own folder.

    Raises:
        UsageError: an agent has neither labels nor a strong judge's sample that correct its score.
    """
    found = {}
    for name, folder in folders.items():
        one = correction_of(replace(roots, eval_results=folder.parent), folder.name, tasks)
        if one is None:
            raise UsageError(
                f"--corrected: {name} has no labels and no sample by a strong judge at these "
                f"tasks; make some with: mind2web2 view {folder.name} --audit YOUR_NAME, or "
                f"mind2web2 rejudge {folder.name} --judge_model STRONG --sample 60"
            )
        if isinstance(one, NoCorrection):
            raise UsageError(f"--corrected: {name} is not corrected by {one.by}: {one.reason}")
        found[name] = one
    first, *others = found
    return [corrected_pair((first, name), found[first], found[name]) for name in others]


def _difference(first: Correction, second: Correction) -> CorrectedDifference:
    """Return the difference.

    Its intervals allow for either verdict on leaves that nobody decides.
    """
    found = corrected_difference(first.mean, second.mean)
    least = corrected_difference(first.high, second.low)
    most = corrected_difference(first.low, second.high)
    return replace(
        found,
        these_tasks=_span(least.these_tasks, most.these_tasks),
        tasks_at_large=_span(least.tasks_at_large, most.tasks_at_large),
    )
