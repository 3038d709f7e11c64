"""``mind2web2 verify-results``: whether every score is correct and up to date."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from mind2web2.cli.console import PlainConsole
from mind2web2.cli.options import settings_of
from mind2web2.cli.results.chosen import named_agents
from mind2web2.errors import UsageError
from mind2web2.results.known_answers import require_results
from mind2web2.runs.settings import RunSettings
from mind2web2.runs.verification import KINDS, Check, Finding, check_results
from mind2web2.utils.names import check_name, name_list, natural_key
from mind2web2.utils.path_config import PathConfig
from mind2web2.utils.program import command_line
from mind2web2.utils.text import counted, number

_WRONG, _OUTDATED = 1, 3


def run(options: argparse.Namespace) -> int:
    """Print the findings and return the exit status."""
    settings = settings_of(options)
    checked = {name: _check_results(settings, name) for name in named_agents(options)}
    if options.json:
        _print_json(checked)
    else:
        for name, answers in checked.items():
            _print(settings, name, answers)
    kinds = {check.state for answers in checked.values() for check in answers} - {"ok"}
    return _WRONG if "wrong" in kinds else _OUTDATED if kinds else 0


def _check_results(settings: RunSettings, agent_name: str) -> list[Check]:
    paths = settings.paths
    require_results(paths.eval_results_root, agent_name)
    paths.script_versions()  # raises where a pinned version does not exist
    judgments = None if settings.judgments is None else Path(settings.judgments)
    if judgments is not None and not judgments.is_file():
        raise UsageError(
            f"no judgments at {judgments}: name a judgments.sqlite3 or an exported .jsonl file"
        )
    task_ids = _tasks(paths, agent_name, settings.task_ids or None)
    return asyncio.run(check_results(paths, agent_name, task_ids, judgments))


def _tasks(paths: PathConfig, agent_name: str, task_ids: Sequence[str] | None) -> list[str]:
    """Return the tasks that have answers or results, or those named."""
    answered = {folder.name for folder in (paths.answers_root / agent_name).glob("[!.]*/")}
    known = answered | {
        path.parts[-3] for path in (paths.eval_results_root / agent_name).glob("*/*/results")
    }
    wanted = known if task_ids is None else {check_name("task", task_id) for task_id in task_ids}
    if not wanted <= known or not known:
        lacking = name_list(wanted - known) if wanted else "any task"
        raise UsageError(
            f"no answers or results of agent {agent_name} to {lacking}. Found: {name_list(known)}"
        )
    return sorted(wanted, key=natural_key)


def _cells(check: Check) -> Sequence[str]:
    stem = check.answer_name.removesuffix(".md")
    return check.task_id, stem, number(check.score), number(check.score_again), check.state


def _print(settings: RunSettings, agent_name: str, answers: Sequence[Check]) -> None:
    console = PlainConsole()
    by_finding: dict[Finding, list[str]] = {}
    for check in answers:
        for finding in check.findings:
            place = f"{check.task_id}/{check.answer_name}"
            by_finding.setdefault(finding, []).append(place)
    headings = ("task", "answer", "score", "run again", "state")
    rows = [_cells(check) for check in answers]
    console.print_table(f"Results of {agent_name}", headings, rows, texts=("answer", "state"))
    for finding, places in sorted(by_finding.items(), key=lambda item: KINDS.index(item[0].kind)):
        text = " ".join(finding.text.split())
        console.print_line(f"{finding.kind.capitalize()}: {name_list(places)}: {text}")
    states = [check.state for check in answers]
    counts = [f"{states.count(kind)} {kind}" for kind in KINDS if kind in states]
    correct = f"{states.count('ok')} correct and up to date"
    console.print_line(f"{counted(len(states), 'answer')}: {', '.join([correct, *counts])}")
    if any(check.findings for check in answers):
        console.print_line(_advice(settings, agent_name, answers))


def _advice(settings: RunSettings, agent_name: str, answers: Sequence[Check]) -> str:
    if any("its pages are gone" in each.text for check in answers for each in check.findings):
        return "Next, bring the pages back: without them, all claims on them would fail"
    words = ["--llm_provider", "replay"]
    files = {str(check.judgments) for check in answers if check.judgments is not None}
    for file in sorted(files)[:1]:
        words += ["--judgments", file]
    command = command_line("evaluate", agent_name, *words, *settings.options())
    is_wrong = any(check.state == "wrong" for check in answers)
    first = "delete the result files that are wrong, then " if is_wrong else ""
    return (
        f"Next, {first}run from the stored judgments (without --llm_provider, a judge is asked for "
        f"those that are missing): {command}"
    )


def _print_json(checked: Mapping[str, Sequence[Check]]) -> None:
    contents = [
        {"agent": name, "answers": [_as_json(check) for check in answers]}
        for name, answers in checked.items()
    ]
    content = contents[0] if len(contents) == 1 else {"agents": contents}
    PlainConsole().print_json(json.dumps(content))


def _as_json(check: Check) -> dict[str, object]:
    return {
        "task_id": check.task_id,
        "answer_name": check.answer_name,
        "path": None if check.path is None else str(check.path),
        "score": check.score,
        "score_again": check.score_again,
        "record": check.state,
        "findings": [finding._asdict() for finding in check.findings],
    }
