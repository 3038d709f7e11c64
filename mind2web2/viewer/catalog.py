"""Results as JSON values for the front end: the same from the server and in an exported file."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any

from mind2web2.analysis.changed_pages import ChangedPages, changed_pages, stayed_by_leaf
from mind2web2.analysis.comparison import NoSharedTaskError, ranking
from mind2web2.analysis.correction_record import (
    CorrectionFigures,
    CorrectionRoots,
    correcting_files,
)
from mind2web2.analysis.corrections import corrected_figures
from mind2web2.analysis.judge_checks import failed_check
from mind2web2.analysis.leaf_report import ENOUGH_RESULTS, JudgedResult, task_report
from mind2web2.analysis.summaries import stored_metrics
from mind2web2.analysis.unreviewed import unreviewed_warnings
from mind2web2.judge.check_record import CheckRecord
from mind2web2.pages.barred import BarredPage, default_barred
from mind2web2.pages.cited_pages import AgentCache
from mind2web2.results.agent_summary import AgentSummary
from mind2web2.results.known_answers import agent_answers, no_results
from mind2web2.results.result_file import ResultFile
from mind2web2.results.scored_answer import (
    ResultFacts,
    ScoredAnswer,
    result_facts,
    scored_by_judge,
)
from mind2web2.results.stored_results import (
    LoadedResult,
    answer_dir,
    answer_results_dir,
    latest_result,
)
from mind2web2.results.task_summary import SUMMARY_NAME
from mind2web2.rubric.arithmetic import explanations
from mind2web2.rubric.written_tree import WrittenNode
from mind2web2.utils.files import read_regular_file
from mind2web2.utils.json_text import parse_json
from mind2web2.utils.names import did_you_mean, is_file_name, name_list, natural_key
from mind2web2.utils.path_config import PathConfig
from mind2web2.viewer.doubts import agent_doubts, leaf_doubts
from mind2web2.viewer.keys import AnswerKey, Json, NoSuchResultError
from mind2web2.viewer.markdown import markdown_tree

# The metrics of an agent's summary.json that the overview shows beside their intervals.
_METRICS = {
    "avg_score_std",
    "num_tasks",
    "num_runs",
    "avg_time_seconds",
}
# Files are looked at again after this time, so that one view does not look at them a hundred times;
# and after so many times as long as the last look took, so that looking at many files takes a small
# part of it.
_LOOK_EVERY_S = 0.5
_LOOK_PAUSE = 20


@dataclass(frozen=True, slots=True)
class _AgentRead:
    """An agent's results as they were read, with the state of the files."""

    look_again_s: float
    state: Mapping[Path, int]
    answers: dict[AnswerKey, ScoredAnswer]
    summary: AgentSummary
    failed_check: str | None
    correction: CorrectionFigures | None
    changed_pages: Sequence[ChangedPages] = ()


class Catalog:
    """The results of some agents. Everything that is read is kept until a file changes.

    Args:
        agents: the agents to show, in this order; empty for all that have results.
        corrections: where labels and samples by a strong judge are.
    """

    def __init__(
        self,
        paths: PathConfig,
        agents: Sequence[str] = (),
        tasks: Sequence[str] = (),
        corrections: CorrectionRoots | None = None,
    ) -> None:
        self.paths = paths
        self._corrections = corrections or CorrectionRoots(
            paths.eval_results_root, Path("audits"), Path("rejudged")
        )
        self._agents = list(agents)
        self._tasks = frozenset(tasks)
        self._read: dict[str, _AgentRead] = {}
        self._reading = Lock()

    def agents(self) -> list[str]:
        """Return the names of the agents.

        Raises UsageError: an agent has no results, or none has.
        """
        files = self.paths.eval_results_root.glob(f"*/{SUMMARY_NAME}")
        known = sorted({path.parent.name for path in files}, key=natural_key)
        for name in self._agents or known or ["AGENT"]:
            if name not in known:
                raise no_results(self.paths.eval_results_root, name)
        return self._agents or known

    def check_tasks(self) -> None:
        """Make sure that each task that was asked for is one of an agent's.

        Raises:
            NoSuchResultError: one is not.
        """
        task_ids = {answer.task_id for agent in self.agents() for answer in self.answers(agent)}
        if missing := sorted(self._tasks - task_ids):
            root, missing_task = self.paths.eval_results_root, missing[0]
            known = {
                answer.task_id for agent in self.agents() for answer in agent_answers(root, agent)
            }
            cure = did_you_mean(missing_task, known, f"tasks there: {name_list(known)}")
            raise NoSuchResultError(
                f"no results of task {missing_task} of {' or '.join(self.agents())} under {root}; "
                f"{cure}"
            )

    def answers(self, agent: str) -> list[ScoredAnswer]:
        """Return an agent's answers, scored or not, in natural order."""
        return list(self._agent_read(agent).answers.values())

    def overview(self) -> Json:
        """Return all agents with their metrics, and a row for each answer."""
        agents, rows = [], []
        for agent in self.agents():
            read = self._agent_read(agent)
            agents.append(self._agent(agent, read))
            rows += [self._row(agent, answer) for answer in read.answers.values()]
        return {"agents": agents, "answers": rows}

    def comparison(self, first: str, second: str) -> Json:
        """Return the tests of two agents, as ``compare`` prints them, or why there are none.

        With them goes what moved the score, if ``compare --why`` was run.

        Raises:
            NoSuchResultError: one is not among the agents that are shown.
        """
        agents = [(name, self.answers(name)) for name in (first, second)]
        try:
            tests = ranking(agents, allow_unfair=True).model_dump(mode="json")
        except NoSharedTaskError as error:
            return {"reason": error.fact}
        return {**tests, "why": self._why(first, second) or self._why(second, first)}

    def _why(self, first: str, second: str) -> Json | None:
        """Return what moved the score, where ``compare --why`` has told it."""
        try:
            explanation = parse_json(
                read_regular_file(self.paths.eval_results_root / second / "why.json")
            )
        except (OSError, ValueError):
            return None
        is_of_these = (explanation.get("first"), explanation.get("second")) == (first, second)
        return dict(explanation) if is_of_these else None

    def claims(self) -> list[list[Any]]:
        """Return every leaf with its answer, status, and claim or description.

        A row may end with doubts about the verdict. The first row of an answer is its root, with
        the text of the task.
        """
        rows: list[list[Any]] = []
        for key, result in self._results():
            doubts = leaf_doubts(self._agent_read(key.agent).changed_pages, key, result)
            rows += _claim_rows(key, result, doubts)
        return rows

    def doubts(self) -> Json:
        """Return the doubts about the judges' verdicts that need no labels."""
        agents = []
        for agent in self.agents():
            read = self._agent_read(agent)
            agents.append(agent_doubts(agent, read.changed_pages))
        return {"agents": agents}

    def _barred(self, key: AnswerKey, text: str, result: ResultFile) -> list[BarredPage]:
        pages = AgentCache(self.paths.cache_root / key.agent).of(key.task)
        return default_barred().sources_of(text, result.judged_pages(), pages)

    def _results(self, task: str | None = None) -> Iterator[tuple[AnswerKey, ResultFile]]:
        """Yield all results that count, or those of one task."""
        for agent in self.agents():
            for answer in scored_by_judge(self.answers(agent)):
                key = AnswerKey.of(agent, answer)
                result = self.result(key) if task in (None, key.task) else None
                if result is not None:
                    yield key, result.content

    def leaves(self, task: str) -> Json:
        """Return what each leaf of a task's rubric did in all results that are shown.

        Raises:
            NoSuchResultError: the task has no results.
        """
        results = [JudgedResult(key.agent, content) for key, content in self._results(task)]
        if not results:
            raise NoSuchResultError(f"no results of task {task}")
        stayed = stayed_by_leaf(
            [report for one in self.agents() for report in self._agent_read(one).changed_pages],
            {each.result.judge_model for each in results if each.result.judge_model},
        )
        report = task_report(task, results, stayed)
        return {
            **asdict(report),
            "leaves": [asdict(row) | {"name": row.name} for row in report.leaves],
            "warning": report.warning,
            "too_few": report.too_few,
            "enough": ENOUGH_RESULTS,
        }

    def answer(self, key: AnswerKey) -> Json:
        """Return one answer: its text, its tree with the evidence, and its provenance.

        Raises:
            NoSuchResultError: there is no such answer.
        """
        return self.answer_with(key, self.result(key))

    def answer_with(self, key: AnswerKey, stored: LoadedResult | None) -> Json:
        """Return one answer with a result of it, as ``answer`` does."""
        answer = self._find(key)
        result = _content(stored)
        text = self.answer_text(key)
        doubts = leaf_doubts(self._agent_read(key.agent).changed_pages, key, result)
        return {
            "agent": key.agent,
            "task": key.task,
            "answer": key.answer,
            "score": answer.score,
            "reason": answer.reason,
            "file": None if stored is None else stored.path.name,
            "markdown": markdown_tree(text or ""),
            "has_text": text is not None,
            "trees": [list(tree_rows(tree, doubts)) for tree in result.trees],
            "info": result.info(),
            "extractions": [
                record.model_dump(mode="json", exclude_defaults=True)
                for record in result.extractions
            ],
            "facts": _provenance_facts(result) | {"barred": self._barred(key, text or "", result)},
        }

    def answer_text(self, key: AnswerKey) -> str | None:
        """Return the text that was judged, ``None`` where it was not kept."""
        name = f"{key.answer}.md"
        path = answer_dir(self.paths.eval_results_root, key.agent, key.task, name) / name
        if not path.is_file():
            path = self.paths.answers_root / key.agent / key.task / name
        if not path.is_file():
            return None
        return read_regular_file(path).decode("utf-8", "replace")

    def result(self, key: AnswerKey) -> LoadedResult | None:
        """Return an answer's newest result."""
        self._check(key)
        return latest_result(self._folder(key))

    def content(self, key: AnswerKey) -> ResultFile:
        """Return the content of that result, empty where there is none."""
        return _content(self.result(key))

    def _folder(self, key: AnswerKey) -> Path:
        return answer_results_dir(
            self.paths.eval_results_root, key.agent, key.task, f"{key.answer}.md"
        )

    def _find(self, key: AnswerKey) -> ScoredAnswer:
        self._check(key)
        answer = self._agent_read(key.agent).answers.get(key)
        if answer is None:
            raise NoSuchResultError(
                f"no result of answer {key.answer} to task {key.task} by {key.agent}"
            )
        return answer

    def _check(self, key: AnswerKey) -> None:
        if not all(map(is_file_name, (key.agent, key.task, key.answer))):
            raise NoSuchResultError("not the name of a result")

    def _agent_read(self, agent: str) -> _AgentRead:
        if agent not in self.agents():
            raise NoSuchResultError(f"agent {agent} is not among those shown")
        with self._reading:
            known = self._read.get(agent)
            started_s = time.monotonic()
            if known is not None and started_s < known.look_again_s:
                return known
            state = self._state(agent)
            pause_s = max(_LOOK_EVERY_S, _LOOK_PAUSE * (time.monotonic() - started_s))
            if known is None or known.state != state:
                stored = agent_answers(self.paths.eval_results_root, agent)
                answers = [
                    answer for answer in stored if not self._tasks or answer.task_id in self._tasks
                ]
                summary = stored_metrics(self.paths.eval_results_root, agent, answers)
                check = failed_check(self.paths.eval_results_root, agent)
                correction = corrected_figures(self._corrections, agent, self._tasks or None)
                by_key = {AnswerKey.of(agent, answer): answer for answer in answers}
                known = _AgentRead(0.0, state, by_key, summary, check, correction)
            again_s = time.monotonic() + pause_s
            self._read[agent] = known = replace(
                known, look_again_s=again_s, changed_pages=changed_pages(agent)
            )
            return known

    def _state(self, agent: str) -> dict[Path, int]:
        """Return the files that an agent's figures are read from, with the time of each."""
        root = self.paths.eval_results_root
        files = [
            *(root / agent).glob("*/*.json"),
            *(root / agent).glob("*/*/results/*.json"),
            *CheckRecord.folder(root).glob("*.json"),
            *correcting_files(self._corrections, agent),
        ]
        return {path: path.lstat().st_mtime_ns for path in files}

    def _agent(self, agent: str, read: _AgentRead) -> Json:
        summary = read.summary
        scripts = (answer.facts.script for answer in read.answers.values())
        unreviewed = unreviewed_warnings(self.paths.eval_scripts_root, scripts)
        return {
            "name": agent,
            "metrics": {
                "avg_score": summary.shown_score,
                "success_rate": summary.shown_success_rate,
                **summary.model_dump(include=_METRICS),
            },
            "pass_at": {"k": summary.num_runs, "value": summary.pass_at_k},
            "intervals": _intervals(summary),
            "warnings": [*summary.warnings, *unreviewed],
            "failed_check": read.failed_check,
            "corrected": None
            if read.correction is None
            else read.correction.model_dump(mode="json"),
            "missing": [asdict(answer) for answer in summary.missing],
            "judges": sorted(
                {answer.facts.judge for answer in read.answers.values() if answer.facts.judge}
            ),
            "cost_usd": self._cost(agent),
        }

    def _cost(self, agent: str) -> float | None:
        """Return the judge's dollars for this agent so far, by usage.json."""
        path = self.paths.eval_results_root / agent / "usage.json"
        try:
            costs = [
                run["asked"]["cost_usd"] for run in json.loads(read_regular_file(path))["runs"]
            ]
            return round(math.fsum(costs), 6)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _row(self, agent: str, answer: ScoredAnswer) -> Json:
        key = AnswerKey.of(agent, answer)
        return {
            "agent": agent,
            "task": key.task,
            "answer": key.answer,
            "score": answer.score,
            "reason": answer.reason,
            "marks": sorted(_marks(answer.facts)),
        }


def _content(stored: LoadedResult | None) -> ResultFile:
    return ResultFile() if stored is None else stored.content


def _claim_rows(
    key: AnswerKey, result: ResultFile, doubts: Mapping[str, list[str]]
) -> Iterator[list[Any]]:
    place = [key.agent, key.task, key.answer]
    for tree in result.trees:
        if tree.children:
            yield [*place, "", tree.status, tree.desc]
        for leaf in tree.leaves():
            row = [*place, leaf.id, leaf.status, leaf.grounds.claim or leaf.desc]
            yield [*row, doubts[leaf.id]] if leaf.id in doubts else row


def tree_rows(tree: WrittenNode, doubts: Mapping[str, list[str]]) -> Iterator[Json]:
    """Yield the nodes of a rubric tree in the order of reading, however deep, each with its depth.

    Args:
        doubts: about verdicts, by leaf.
    """
    explained = explanations(tree)
    for node, above in tree.placed():
        place: Json = {
            "depth": len(above),
            "is_leaf": not node.children,
            "arithmetic": explained.get(id(node)),
        }
        if not node.children and node.id in doubts:
            place["doubts"] = doubts[node.id]
        yield {"evidence": None, **node.own_fields(), **place}


def _marks(facts: ResultFacts) -> set[str]:
    """Return the marks of an answer, by the names that the filters have."""
    marks: set[str] = {str(mark) for claim in facts.claims for mark in claim.reservations}
    marks |= {str(mark) for marks_of_one in facts.extractions for mark in marks_of_one}
    named = {
        "split_votes": any(claim.is_split for claim in facts.claims),
        "quote_missing": any("not_found" in claim.quotes for claim in facts.claims),
        "in_doubt": facts.in_doubt,
        "flagged": facts.is_flagged,
        "no_tree": facts.is_treeless,
    }
    return marks | {name for name, is_so in named.items() if is_so}


def _provenance_facts(result: ResultFile) -> Json:
    """Return how a result was made."""
    facts = result_facts(result)
    fact_names = (
        "run",
        "provenance",
        "judge_usage",
        "quotes",
        "doubts",
        "answer_flags",
        "time_seconds",
    )
    named = {
        "judge": facts.judge,
        "server": facts.server,
        "script": facts.script,
        "script_faults": result.script_faults,
    }
    document = result.document
    return named | {name: document[name] for name in fact_names if name in document}


def _intervals(summary: AgentSummary) -> dict[str, list[float | None]]:
    """Return the ends of the intervals that are known, by the names that the overview has."""
    shown = {"avg_score": "avg_score", "success_rate": "success_rate", "pass_at": "pass_at_k"}
    known = summary.shown_intervals
    ends = {}
    for name, published in shown.items():
        interval = known[published]
        if interval.is_known:
            ends[name] = [interval.low, interval.high]
    return ends
