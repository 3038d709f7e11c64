"""``metrics --junit``: each answer of an agent is a test case."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from mind2web2.analysis.agent_report import ReportedAgent
from mind2web2.results.scored_answer import ScoredAnswer
from mind2web2.results.stored_results import answer_results_dir, latest_result
from mind2web2.rubric.written_tree import WrittenNode
from mind2web2.utils.junit import JUnitCase, JUnitSuite, junit_xml
from mind2web2.utils.text import number

_FIGURES = ("avg_score", "success_rate", "num_tasks", "num_runs")


def junit_of(root: Path, agents: Iterable[ReportedAgent]) -> bytes:
    """Return the XML of agents' test suites."""
    return junit_xml([_suite(root, agent) for agent in agents])


def _suite(root: Path, agent: ReportedAgent) -> JUnitSuite:
    """Return the test suite of an agent.

    An answer below score 1 is a failure with the claim of its first failed leaf; one without a
    score is an error with the reason.
    """
    summary = agent.report.summary
    properties = {name: getattr(summary, name) for name in _FIGURES}
    return JUnitSuite(agent.name, list(_cases(root, agent)), properties)


def _cases(root: Path, agent: ReportedAgent) -> Iterator[JUnitCase]:
    missing = _missing_reasons(agent)
    answers = {(answer.task_id, answer.answer_name): answer for answer in agent.answers}
    scored = {place for place in answers if place[0] in agent.report.summary.tasks}
    for place in sorted(scored | missing.keys()):
        classname = f"{agent.name}.{place[0]}"
        name = place[1].removesuffix(".md")
        if place in missing:
            yield JUnitCase(classname, name, missing[place], kind="error")
            continue
        answer = answers[place]
        failed = [] if answer.score == 1.0 else _failed_claims(root, agent.name, answer)
        why = answer.reason or (failed[0] if failed else "no leaf failed")
        yield JUnitCase(
            classname,
            name,
            None if answer.score == 1.0 else f"score {number(answer.score)}: {why}",
            "\n".join(failed),
            time_s=answer.time_s,
        )


def _missing_reasons(agent: ReportedAgent) -> dict[tuple[str, str], str]:
    """Return why answers have no score, by task and answer name."""
    return {
        (each.task_id, each.answer_name or "no answer"): each.reason
        for each in agent.report.summary.missing
    }


def _failed_claims(root: Path, agent_name: str, answer: ScoredAnswer) -> list[str]:
    found = latest_result(answer_results_dir(root, agent_name, answer.task_id, answer.answer_name))
    leaves = () if found is None else found.content.leaves()
    return [_claim(leaf) for leaf in leaves if leaf.status == "failed"]


def _claim(leaf: WrittenNode) -> str:
    claim = None if leaf.evidence is None else leaf.evidence.claim
    return f"{leaf.id}: {claim or leaf.desc}"
