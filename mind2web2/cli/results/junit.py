"""Results as JUnit XML, which continuous integration shows beside its other tests."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

from mind2web2.runs.reader import leaves_of
from mind2web2.runs.score_matrix import ScoredAnswer
from mind2web2.utils.text import mapping

# Characters that XML does not have; answers and pages may hold them.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_METRICS = ("avg_score", "success_rate", "num_tasks", "num_runs")


def junit_suite(
    summary: Mapping[str, Any],
    answers: Sequence[ScoredAnswer],
    results: Mapping[tuple[str, str], Mapping[str, Any]],
    unevaluated: Sequence[str],
) -> ElementTree.Element:
    """Return the test suite of an agent, with a test case for each answer.

    An answer below score 1 is a failure with the claim of its first failed leaf; one without a score is an
    error with the reason.

    Args:
        summary: the agent's metrics; their tasks and missing answers are those of the suite.
        results: contents by task and answer name.
        unevaluated: answers that were never evaluated, as ``task/answer``.
    """
    suite = ElementTree.Element("testsuite", name=_text(summary["agent_name"]))
    properties = ElementTree.SubElement(suite, "properties")
    for name in _METRICS:
        ElementTree.SubElement(properties, "property", name=name, value=str(summary[name]))
    missing = {
        (each["task_id"], each["answer_name"] or "no answer"): each["reason"] for each in summary["missing"]
    }
    for name in unevaluated:
        task_id, _, answer_name = name.rpartition("/")
        missing[task_id, answer_name] = "never evaluated"
    cases = {(answer.task_id, answer.answer_name): answer for answer in answers}
    scored = [place for place in cases if place[0] in summary["tasks"] and place not in missing]
    for place in sorted({*scored, *missing}):
        attributes = {"classname": _text(f"{summary['agent_name']}.{place[0]}")}
        case = ElementTree.SubElement(suite, "testcase", attributes, name=_text(place[1].removesuffix(".md")))
        if place in missing:
            ElementTree.SubElement(case, "error", message=_text(missing[place]))
            continue
        answer = cases[place]
        if answer.time_s is not None:
            case.set("time", f"{answer.time_s:g}")
        if answer.score != 1.0:
            _add_failure(case, answer, results.get(place, {}))
    for kind, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error")):
        suite.set(kind, str(sum(1 for _ in suite.iter(tag))))
    return suite


def _add_failure(case: ElementTree.Element, answer: ScoredAnswer, result: Mapping[str, Any]) -> None:
    failed = [_claim(leaf) for leaf in leaves_of(result) if leaf.get("status") == "failed"]
    why = answer.reason or (failed[0] if failed else "no leaf failed")
    message = _text(f"score {answer.score:g}: {why}")
    ElementTree.SubElement(case, "failure", message=message, type="score").text = _text("\n".join(failed))


def _claim(leaf: Mapping[str, Any]) -> str:
    claim = mapping(leaf.get("evidence")).get("claim")
    return f"{leaf.get('id')}: {claim or leaf.get('desc') or ''}"


def _text(value: object) -> str:
    return _NOT_XML.sub("\ufffd", str(value))


def junit_xml(suites: Sequence[ElementTree.Element]) -> bytes:
    """Return the content of the file."""
    root = ElementTree.Element("testsuites")
    root.extend(suites)
    ElementTree.indent(root)
    content: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return content + b"\n"
