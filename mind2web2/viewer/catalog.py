"""What the front end shows of results, as JSON values: the same from the server and in an exported file."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mind2web2.errors import UsageError
from mind2web2.runs.metrics import agent_metrics
from mind2web2.runs.reader import result_facts
from mind2web2.runs.results import LoadedResult, answer_dir, answer_results_dir, latest_result, loaded_results
from mind2web2.runs.score_matrix import ScoredAnswer
from mind2web2.runs.summaries import agent_answers
from mind2web2.utils.files import read_regular_file
from mind2web2.utils.names import is_file_name, name_list, natural_key
from mind2web2.utils.path_config import PathConfig
from mind2web2.viewer.markdown import markdown_tree

Json = dict[str, Any]

# The metrics of an agent's summary.json that the overview shows beside their intervals.
_METRICS = ("avg_score", "avg_score_std", "success_rate", "success_rate_std", "num_tasks", "num_runs")
_DESCRIPTION_CHARS = 4000


class NoSuchResultError(UsageError):
    """There is no such agent, answer or page among the results that are shown."""


@dataclass(frozen=True, slots=True)
class AnswerKey:
    """One answer: ``answer`` is the file's name without ``.md``."""

    agent: str
    task: str
    answer: str


class Catalog:
    """The results of some agents.

    Args:
        agents: the agents to show, in this order; empty for all that have results.
        tasks: only these tasks; empty for all.
    """

    def __init__(self, paths: PathConfig, agents: Sequence[str] = (), tasks: Sequence[str] = ()) -> None:
        self.paths = paths
        self._agents = list(agents)
        self._tasks = frozenset(tasks)
        # What was read of a result file, by its path: a result file is written once.
        self._rows: dict[Path, tuple[int, Json]] = {}

    def agents(self) -> list[str]:
        """Return the names of the agents.

        Raises:
            NoSuchResultError: an agent has no results, or none has.
        """
        root = self.paths.eval_results_root
        known = sorted((path.parent.name for path in root.glob("*/summary.json")), key=natural_key)
        if missing := [name for name in self._agents if name not in known]:
            there = name_list(known) if known else "none"
            raise NoSuchResultError(f"no results of agent {missing[0]} under {root}; agents there: {there}")
        if not known:
            raise NoSuchResultError(f"no results under {root}; run: mind2web2 evaluate AGENT")
        return self._agents or known

    def shows(self, agent: str) -> bool:
        """Tell whether an agent is among those that were asked for, with results or not."""
        return not self._agents or agent in self._agents

    def answers(self, agent: str) -> list[ScoredAnswer]:
        """Return an agent's answers, scored or not, in natural order."""
        if agent not in self.agents():
            raise NoSuchResultError(f"agent {agent} is not among those shown")
        found = agent_answers(self.paths.eval_results_root, agent)
        return [answer for answer in found if not self._tasks or answer.task_id in self._tasks]

    def overview(self) -> Json:
        """Return all agents with their metrics, and a row for each answer."""
        agents, rows = [], []
        for agent in self.agents():
            answers = self.answers(agent)
            agents.append(self._agent(agent, answers))
            rows += [self._row(agent, answer) for answer in answers]
        return {"agents": agents, "answers": rows}

    def claims(self) -> list[list[Any]]:
        """Return every leaf: agent, task, answer, leaf, status, and its claim or description."""
        found = []
        for agent in self.agents():
            for answer in self.answers(agent):
                key = AnswerKey(agent, answer.task_id, _stem(answer))
                for leaf, status, claim in self._read_row(key).get("claims", ()):
                    found.append([key.agent, key.task, key.answer, leaf, status, claim])
        return found

    def answer(self, key: AnswerKey) -> Json:
        """Return one answer: its text, its rubric tree with the evidence, and how the result was made.

        Raises:
            NoSuchResultError: there is no such answer.
        """
        answer = self._find(key)
        found = self.result(key)
        result = {} if found is None else found.content
        return {
            "agent": key.agent,
            "task": key.task,
            "answer": key.answer,
            "score": answer.score,
            "reason": answer.reason,
            "file": None if found is None else found.path.name,
            "markdown": markdown_tree(self.answer_text(key) or ""),
            "has_text": self.answer_text(key) is not None,
            "trees": [list(tree_rows(tree)) for tree in _trees(result)],
            "info": [part.get("info") for part in _mappings(result.get("eval_breakdown"))],
            "extractions": _mappings(result.get("extractions")),
            "facts": _making(result),
        }

    def answer_text(self, key: AnswerKey) -> str | None:
        """Return the text that was judged, ``None`` where it was not kept."""
        name = f"{key.answer}.md"
        path = answer_dir(self.paths.eval_results_root, key.agent, key.task, name) / name
        if not path.is_file():
            path = self.paths.answers_root / key.agent / key.task / name
        content = read_regular_file(path) if path.is_file() else None
        return None if content is None else content.decode("utf-8", "replace")

    def result(self, key: AnswerKey) -> LoadedResult | None:
        """Return an answer's newest result."""
        self._check(key)
        folder = answer_results_dir(self.paths.eval_results_root, key.agent, key.task, f"{key.answer}.md")
        return latest_result(folder)

    def _find(self, key: AnswerKey) -> ScoredAnswer:
        self._check(key)
        for answer in self.answers(key.agent):
            if (answer.task_id, _stem(answer)) == (key.task, key.answer):
                return answer
        raise NoSuchResultError(f"no result of answer {key.answer} to task {key.task} by {key.agent}")

    def _check(self, key: AnswerKey) -> None:
        if not all(map(is_file_name, (key.agent, key.task, key.answer))):
            raise NoSuchResultError("not the name of a result")

    def _agent(self, agent: str, answers: Sequence[ScoredAnswer]) -> Json:
        summary = agent_metrics(agent, answers).summary()
        passes = next((name for name in summary if name.startswith("pass_at_")), "pass_at_0")
        return {
            "name": agent,
            "metrics": {name: summary[name] for name in (*_METRICS, "avg_time_seconds")},
            "pass_at": {"k": int(passes.removeprefix("pass_at_")), "value": summary[passes]},
            "intervals": _intervals(summary, passes),
            "warnings": summary["warnings"],
            "missing": summary["missing"],
            "judges": sorted({answer.facts.judge for answer in answers if answer.facts.judge}),
            "cost_usd": self._cost(agent),
        }

    def _cost(self, agent: str) -> float | None:
        """Return the dollars that the judge has cost for this agent so far, as usage.json counts them."""
        path = self.paths.eval_results_root / agent / "usage.json"
        try:
            costs = [run["asked"]["cost_usd"] for run in json.loads(path.read_bytes())["runs"]]
            return round(math.fsum(costs), 6)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _row(self, agent: str, answer: ScoredAnswer) -> Json:
        row = {
            "agent": agent,
            "task": answer.task_id,
            "answer": _stem(answer),
            "score": answer.score,
            "reason": answer.reason,
        }
        read = self._read_row(AnswerKey(agent, answer.task_id, _stem(answer)))
        return row | {name: value for name, value in read.items() if name != "claims"}

    def _read_row(self, key: AnswerKey) -> Json:
        folder = answer_results_dir(self.paths.eval_results_root, key.agent, key.task, f"{key.answer}.md")
        newest = max(folder.glob("*.md.json"), key=lambda path: path.name, default=None)
        if newest is None:
            return {}
        changed_ns = newest.stat().st_mtime_ns
        known = self._rows.get(newest)
        if known is None or known[0] != changed_ns:
            known = changed_ns, _read_row(folder)
            self._rows[newest] = known
        return known[1]


def tree_rows(tree: Mapping[str, Any]) -> Iterator[Json]:
    """Yield the nodes of a rubric tree in the order of reading, however deep, each with its depth."""
    stack: list[tuple[Mapping[str, Any], int]] = [(tree, 0)] if tree else []
    while stack:
        node, depth = stack.pop()
        children = _mappings(node.get("children"))
        row = {name: value for name, value in node.items() if name != "children"}
        yield row | {"depth": depth, "is_leaf": not children}
        stack.extend((child, depth + 1) for child in reversed(children))


def _read_row(folder: Path) -> Json:
    """Return what the overview and the search need of an answer's newest result."""
    newest = latest_result(folder)
    if newest is None:
        return {}
    result = newest.content
    earlier = next((found for found in loaded_results(folder) if found.path != newest.path), None)
    leaves = [leaf for tree in _trees(result) for leaf in tree_rows(tree) if leaf["is_leaf"]]
    counts = Counter(str(leaf.get("status")) for leaf in leaves)
    return {
        "leaves": {status: counts[status] for status in ("passed", "failed", "skipped")},
        "marks": sorted(_marks(result)),
        "before": None if earlier is None else earlier.content.get("final_score"),
        "claims": [
            (str(leaf.get("id")), str(leaf.get("status")), _claim(leaf) or str(leaf.get("desc")))
            for leaf in leaves
        ],
        "description": next((str(tree.get("desc"))[:_DESCRIPTION_CHARS] for tree in _trees(result)), ""),
    }


def _marks(result: Mapping[str, Any]) -> set[str]:
    """Return what a reader may want to look at, by the names that the filters have."""
    facts = result_facts(result)
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


def _making(result: Mapping[str, Any]) -> Json:
    """Return how a result was made."""
    facts = result_facts(result)
    kept = ("run", "provenance", "judge_usage", "quotes", "doubts", "answer_flags", "time_seconds")
    return {"judge": facts.judge, "server": facts.server, "script": facts.script} | {
        name: result[name] for name in kept if name in result
    }


def _intervals(summary: Mapping[str, Any], passes: str) -> Json:
    metrics = summary["intervals"]["metrics"]
    return {
        shown: [metrics[name]["low"], metrics[name]["high"]]
        for shown, name in (("avg_score", "avg_score"), ("success_rate", "success_rate"), ("pass_at", passes))
        if name in metrics and metrics[name]["low"] is not None
    }


def _claim(leaf: Mapping[str, Any]) -> str:
    evidence = leaf.get("evidence")
    claim = evidence.get("claim") if isinstance(evidence, Mapping) else None
    return claim if isinstance(claim, str) else ""


def _trees(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    trees = (part.get("verification_tree") for part in _mappings(result.get("eval_breakdown")))
    return [tree for tree in trees if isinstance(tree, Mapping)]


def _mappings(value: object) -> list[Mapping[str, Any]]:
    return [entry for entry in value if isinstance(entry, Mapping)] if isinstance(value, list) else []


def _stem(answer: ScoredAnswer) -> str:
    return answer.answer_name.removesuffix(".md")
