"""Doubts about a judge's verdicts that need no labels, as the front end shows them."""

from __future__ import annotations

from collections.abc import Sequence

from mind2web2.analysis.changed_pages import ChangedPages
from mind2web2.results.result_file import ResultFile
from mind2web2.viewer.keys import AnswerKey, Json

UNREAD = "not read from the page"


def leaf_doubts(
    reports: Sequence[ChangedPages], key: AnswerKey, result: ResultFile
) -> dict[str, list[str]]:
    """Return the doubts about the leaves of a result, by leaf."""
    return {
        leaf: [UNREAD]
        for report in reports
        for leaf in report.unread_leaves(key.task, key.answer, result)
    }


def agent_doubts(agent: str, reports: Sequence[ChangedPages]) -> Json:
    """Return what is known of an agent's judges: a sentence each, and each verdict that stayed."""
    return {
        "agent": agent,
        "lines": [report.sentence for report in reports],
        "stayed": [
            {"agent": agent, "judge": report.judge, **each.model_dump(mode="json")}
            for report in reports
            for each in report.survivors
        ],
    }
