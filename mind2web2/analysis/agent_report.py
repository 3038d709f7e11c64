"""An agent's metrics with what they rest on: the report of ``mind2web2 metrics``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from mind2web2.analysis.citation import Making, paper_sentence
from mind2web2.analysis.correction_record import CorrectionFigures
from mind2web2.analysis.metrics import agent_metrics
from mind2web2.analysis.score_matrix import score_grid
from mind2web2.analysis.summaries import (
    SummedUp,
    stored_metrics,
    summarise_answers,
    summed_up,
)
from mind2web2.analysis.tag_figures import (
    DomainFigure,
    TagFigure,
    TagShares,
    domain_figures,
)
from mind2web2.analysis.unreviewed import unreviewed_warnings
from mind2web2.errors import AnswerError, ResultWriteError
from mind2web2.pages.barred import BarredList
from mind2web2.pages.cited_pages import AgentCache
from mind2web2.results.agent_summary import AgentSummary
from mind2web2.results.answer_files import with_file_facts, with_unevaluated
from mind2web2.results.answers import read_answer
from mind2web2.results.cautions import CautionFacts, cautions
from mind2web2.results.freshness import ResultsNow, results_now
from mind2web2.results.known_answers import no_results
from mind2web2.results.result_file import ResultFile
from mind2web2.results.scored_answer import ScoredAnswer, scored_answers, scored_by_judge
from mind2web2.results.stored_results import LoadedResult, latest_results
from mind2web2.utils.json_text import JsonObject
from mind2web2.utils.names import name_list
from mind2web2.utils.path_config import PathConfig
from mind2web2.utils.text import percent


class AgentReport(BaseModel):
    """The report that ``metrics --json`` prints for an agent, with the metrics themselves.

    Args:
        corrected: ``None`` without labels and without a strong judge's sample.
        sentence: to copy into a paper; ``None`` without a score.
        by_tag: ``None`` where it is not asked for.
        by_domain: empty where the task list names no domains.
    """

    model_config = ConfigDict(frozen=True)

    summary: AgentSummary
    now: ResultsNow
    corrected: CorrectionFigures | None
    cautions: tuple[str, ...]
    sentence: str | None
    by_tag: tuple[TagFigure, ...] | None
    by_domain: tuple[DomainFigure, ...]

    def as_json(self) -> JsonObject:
        """Return the metrics as they stand in ``summary.json``, and beside them the rest."""
        rest: JsonObject = self.model_dump(mode="json", exclude={"summary", "now"})
        now: JsonObject = self.model_dump(mode="json", include={"now"})["now"]
        return {**self.summary.as_json(), **now, **rest}


@dataclass(frozen=True)
class ReportedAgent:
    """An agent's report, with what else is at hand once its results are read.

    Args:
        newest: the result that was made last.
        not_written: why ``summary.json`` could not be written.
    """

    name: str
    answers: Sequence[ScoredAnswer]
    report: AgentReport
    newest: ResultFile | None
    not_written: str | None


def agent_report(
    paths: PathConfig,
    agent_name: str,
    task_ids: Collection[str] | None,
    domains: Mapping[str, str],
    *,
    by_tag: bool,
    corrected: CorrectionFigures | None,
    barred: BarredList,
) -> ReportedAgent:
    """Write an agent's ``summary.json`` and report on it.

    A folder that is shared for reading is reported on without being written to.

    Raises:
        UsageError: it has no results.
    """
    root = paths.eval_results_root
    summed, not_written = _summarise(paths, agent_name, task_ids)
    answers, summary = summed.answers, summed.summary
    reported = [answer for answer in scored_answers(answers) if answer.task_id in summary.tasks]
    gathered = _Gathered({answer.place for answer in scored_by_judge(reported)})
    # One result after another: a large run's do not fit into memory together.
    for task_id, name, result in latest_results(root, agent_name):
        gathered.add(task_id, name, result)
    # summary.json does not have it: it holds until a person reviews the file.
    unreviewed = unreviewed_warnings(
        paths.eval_scripts_root, (answer.facts.script for answer in reported)
    )
    summary = summary.model_copy(update={"warnings": (*summary.warnings, *unreviewed)})
    flagged = _barred_answers(paths, agent_name, gathered.judged_pages, barred)
    barred_line = _barred_line(agent_name, answers, flagged, task_ids)
    report = AgentReport(
        summary=summary,
        now=results_now(paths, agent_name, answers, task_ids),
        corrected=corrected,
        cautions=(*cautions(gathered.cautious), *filter(None, [barred_line])),
        sentence=paper_sentence(summary, reported, gathered.making, corrected),
        by_tag=tuple(gathered.tags.figures()) if by_tag else None,
        by_domain=tuple(domain_figures(summary.tasks, domains)),
    )
    newest = None if gathered.newest is None else gathered.newest.content
    return ReportedAgent(agent_name, answers, report, newest, not_written)


def _barred_answers(
    paths: PathConfig,
    agent_name: str,
    judged_pages: Mapping[tuple[str, str], Sequence[str]],
    barred: BarredList,
) -> list[tuple[str, str]]:
    """Return the answers that cite a barred source, or were judged on one; reads files."""
    cache = AgentCache(paths.cache_root / agent_name)
    answers = []
    for (task_id, name), judged in judged_pages.items():
        try:
            text = read_answer(paths.answers_root / agent_name / task_id / name)
        except AnswerError:
            text = ""
        if barred.sources_of(text, judged, cache.of(task_id)):
            answers.append((task_id, name))
    return answers


def _barred_line(
    agent_name: str,
    answers: Sequence[ScoredAnswer],
    flagged: Collection[tuple[str, str]],
    task_ids: Collection[str] | None,
) -> str | None:
    if not flagged:
        return None
    scores = score_grid(answers, task_ids).scores
    left = [ScoredAnswer(*place, scores[place]) for place in scores.keys() - flagged]
    without = agent_metrics(agent_name, left)
    return (
        f"answers that rest on barred sources, which changes no score: {len(flagged)} "
        f"({name_list('/'.join(place) for place in flagged)}); without them: partial completion "
        f"{_shown(without.avg_score)}, success rate {_shown(without.success_rate)}"
    )


def _shown(share: float | None) -> str:
    return "unknown" if share is None else percent(share)


def _summarise(
    paths: PathConfig, agent_name: str, task_ids: Collection[str] | None
) -> tuple[SummedUp, str | None]:
    """Return answers and metrics, and why they could not be written.

    Lengths and times that results lack, and answers that were never evaluated, come from the
    answers' files. ``summary.json`` is made from results alone, whoever writes it.
    """
    root = paths.eval_results_root
    not_written = None
    try:
        summed = summarise_answers(root, agent_name, task_ids)
    except ResultWriteError as error:
        not_written = str(error)
        summed = summed_up(root, agent_name, task_ids)
    if summed is None:
        raise no_results(root, agent_name)
    answers = with_file_facts(summed.answers, paths.answers_root / agent_name)
    answers = with_unevaluated(answers, paths, agent_name)
    if answers != summed.answers:
        summed = SummedUp(answers, stored_metrics(root, agent_name, answers, task_ids))
    return summed, not_written


class _Gathered:
    """The facts of results that a report needs beside the metrics, read one by one.

    Args:
        reported: the answers that the report is about, as far as a judge scored them.
    """

    def __init__(self, reported: set[tuple[str, str]]) -> None:
        self._reported = reported
        self.cautious: list[CautionFacts] = []
        self.judged_pages: dict[tuple[str, str], list[str]] = {}
        self.making = Making()
        self.tags = TagShares()
        self.newest: LoadedResult | None = None

    def add(self, task_id: str, answer_name: str, result: LoadedResult) -> None:
        """Take what is needed of a result."""
        place = (task_id, answer_name)
        if place not in self._reported:
            return
        if self.newest is None or result.path.name > self.newest.path.name:
            self.newest = result
        self.cautious.append(CautionFacts.of(task_id, answer_name, result.content))
        self.judged_pages[place] = result.content.judged_pages()
        self.making.add(result.content)
        self.tags.add(task_id, result.content)
