"""``mind2web2 verify-results``: whether every score is correct and up to date."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mind2web2.cli.options import (
    Subcommands,
    add_folder_options,
    add_task_option,
    paths_of,
    temperature,
)
from mind2web2.cli.results.metrics import check_record
from mind2web2.cli.settings import extra_body, suggested_evaluation
from mind2web2.errors import UsageError
from mind2web2.utils.text import check_name, name_list, natural_key

if TYPE_CHECKING:
    from mind2web2.runs.verification import AnswerCheck, Cure, Finding
    from mind2web2.utils.path_config import PathConfig

DESCRIPTION = """\
Check an agent's results: each is judged again in a temporary folder, from the stored judgments, and its tree,
votes and score are compared; so are the checksums of answer, script, pages, the files that the script read
and the result itself, and the metrics. No judge is asked, and none of your files changes.

  mind2web2 verify-results my_agent                   all results
  mind2web2 verify-results my_agent --task_id TASK    those of one task; may be repeated

  wrong      a result that was changed or damaged, or that its judgments do not give; or a score that a
             script returned in place of the one that its rubric tree gives
  stale      answer, script, a page, a file that the script read, the judge or its questions have changed
  missing    an answer without a score, or a file that a result needs

Checksums show accidents; they do not show a record that was forged as a whole, judgments included.
Exit status: 0 everything is correct and up to date, 1 something is wrong, 2 nothing could be checked,
3 nothing is wrong, but something is stale or missing.
"""

_WRONG, _OUTDATED = 1, 3
_ALL_TASKS = "all tasks"
_KINDS = ("wrong", "stale", "missing")


def add_command(commands: Subcommands) -> None:
    """Add ``verify-results`` to ``mind2web2``."""
    parser = commands.add_parser(
        "verify-results", help="check that every score is correct and up to date", description=DESCRIPTION
    )
    parser.add_argument("agent", metavar="AGENT", help="the agent, a folder under eval_results/")
    add_task_option(parser, "all, with the agent's own summary")
    parser.add_argument(
        "--judgments",
        metavar="FILE",
        type=Path,
        help="a judgments.sqlite3 or exported .jsonl file with the votes (default: the agent's own under "
        "eval_results/)",
    )
    parser.add_argument(
        "--eval_version", metavar="V", help="version of the eval scripts that counts, as for evaluate"
    )
    _add_judge_options(parser)
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    add_folder_options(parser)
    parser.set_defaults(run=run)


def _add_judge_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "judge", "the expected judge; results of others are stale (default: the judge of the newest result)"
    )
    group.add_argument("--judge_model", metavar="M", help="the model")
    group.add_argument("--judge_reasoning_effort", metavar="E", help="such as low, medium or high")
    group.add_argument("--judge_temperature", metavar="T", type=temperature, help="the temperature asked for")
    group.add_argument(
        "--judge_extra_body", metavar="JSON", type=extra_body, help="the further parameters of its requests"
    )


def run(options: argparse.Namespace) -> int:
    """Print the findings and return the exit status."""
    from mind2web2.runs.verification import summary_findings, verified

    agent_name = check_name("agent", options.agent)
    paths = paths_of(options)
    root = paths.eval_results_root
    check_record(options, root, agent_name)
    paths.script_versions()  # raises where a pinned version does not exist
    if options.judgments is not None and not options.judgments.is_file():
        raise UsageError(
            f"no judgments at {options.judgments}: name a judgments.sqlite3 or an exported .jsonl file"
        )
    task_ids = _tasks(paths, agent_name, options.task_ids)
    answers = verified(paths, agent_name, task_ids, judge=_judge(options), judgments=options.judgments)
    summaries = {task_id: summary_findings(paths, agent_name, task_id) for task_id in task_ids}
    if options.task_ids is None:
        summaries[_ALL_TASKS] = summary_findings(paths, agent_name, None)
    if options.json:
        _print_json(answers, summaries)
    else:
        _print(options, answers, summaries)
    kinds = {finding.kind for findings in _by_place(answers, summaries).values() for finding in findings}
    return _WRONG if "wrong" in kinds else _OUTDATED if kinds else 0


def _by_place(
    answers: Sequence[AnswerCheck], summaries: Mapping[str, Sequence[Finding]]
) -> dict[str, Sequence[Finding]]:
    return {answer.place: answer.findings for answer in answers} | dict(summaries)


def _judge(options: argparse.Namespace) -> dict[str, Any]:
    from mind2web2.judge.caching import keyed_part

    given = {
        "model": options.judge_model,
        "reasoning_effort": options.judge_reasoning_effort,
        "temperature": options.judge_temperature,
        "extra_body": keyed_part(options.judge_extra_body),
    }
    return {name: value for name, value in given.items() if value is not None}


def _tasks(paths: PathConfig, agent_name: str, task_ids: Sequence[str] | None) -> list[str]:
    """Return the tasks that have answers or results, or those named."""
    answered = {folder.name for folder in (paths.answers_root / agent_name).glob("[!.]*/")}
    known = answered | {path.parts[-3] for path in (paths.eval_results_root / agent_name).glob("*/*/results")}
    wanted = known if task_ids is None else {check_name("task", task_id) for task_id in task_ids}
    if not wanted <= known or not known:
        lacking = name_list(wanted - known) if wanted else "any task"
        raise UsageError(
            f"no answers or results of agent {agent_name} to {lacking}: there is {name_list(known)}"
        )
    return sorted(wanted, key=natural_key)


def _print(
    options: argparse.Namespace, answers: Sequence[AnswerCheck], summaries: Mapping[str, Sequence[Finding]]
) -> None:
    from rich.table import Table

    from mind2web2.cli.console import line, number, plain_console

    console = plain_console()
    table = Table(title=f"Results of {options.agent}")
    table.add_column("task", overflow="fold")
    table.add_column("answer", overflow="fold")
    table.add_column("score", justify="right")
    table.add_column("recomputed", justify="right")
    table.add_column("state")
    for answer in answers:
        numbers = (number(answer.score), number(answer.tree_score))
        table.add_row(answer.task_id, answer.answer_name.removesuffix(".md"), *numbers, _state(answer))
    console.print(table)
    by_finding: dict[Finding, list[str]] = {}
    for place, findings in _by_place(answers, summaries).items():
        for finding in findings:
            by_finding.setdefault(finding, []).append(place)
    for finding, places in sorted(by_finding.items(), key=lambda item: _KINDS.index(item[0].kind)):
        text = " ".join(finding.text.split())
        line(console, f"{finding.kind.capitalize()}: {', '.join(places)}: {text}")
    states = [_state(answer) for answer in answers]
    counts = [f"{states.count(kind)} {kind}" for kind in _KINDS if kind in states]
    correct = f"correct and up to date: {states.count('ok')}"
    line(console, "; ".join([f"Answers: {len(states)}", correct, *counts]))
    for text in _suggestions(options, answers, summaries):
        line(console, text)


def _suggestions(
    options: argparse.Namespace, answers: Sequence[AnswerCheck], summaries: Mapping[str, Sequence[Finding]]
) -> list[str]:
    """Return one line for each remedy, with the answers that it is for."""
    by_cure: dict[Cure, list[AnswerCheck]] = {}
    for answer in answers:
        if answer.findings:
            # The remedy of the gravest finding settles the others as well.
            worst = min(answer.findings, key=lambda finding: _KINDS.index(finding.kind))
            by_cure.setdefault(worst.cure, []).append(answer)
    lines = [
        f"Next, for {', '.join(each.place for each in some)}: {_suggestion(options, cure, some, answers)}"
        for cure, some in by_cure.items()
    ]
    names = [name for name, findings in summaries.items() if findings]
    if names and not lines:
        lines.append(f"Next, for {', '.join(names)}: {_suggestion(options, 'summaries', answers, answers)}")
    return lines


def _suggestion(
    options: argparse.Namespace, cure: Cure, some: Sequence[AnswerCheck], answers: Sequence[AnswerCheck]
) -> str:
    if cure == "script":
        return "see why the eval script returns another score than its rubric tree gives"
    if cure == "answer":
        return "put the answer back in its place, or remove its folder of results"
    tasks = {answer.task_id: None for answer in some}
    is_all = options.task_ids is None and len(tasks) == len({answer.task_id for answer in answers})
    words = [] if is_all else [word for task_id in tasks for word in ("--task_id", task_id)]
    words += [word for name, value in _judge(options).items() for word in (f"--judge_{name}", str(value))]
    words += ["--overwrite"] if cure in ("overwrite", "judgments") else []
    # An answer without a result of its own is judged as the others were.
    like = next((each.content for each in (*some, *answers) if each.content.get("provenance")), None)
    evaluate = suggested_evaluation(options, options.agent, like, *words)
    if cure == "judgments":
        return f"name their file with --judgments FILE, or ask again: {evaluate}"
    return f"{evaluate} (asks all its judgments again)" if cure == "overwrite" else evaluate


def _state(answer: AnswerCheck) -> str:
    return next((kind for kind in _KINDS if any(finding.kind == kind for finding in answer.findings)), "ok")


def _print_json(answers: Sequence[AnswerCheck], summaries: Mapping[str, Sequence[Finding]]) -> None:
    from mind2web2.cli.console import plain_console

    content = {
        "answers": [
            {
                "task_id": answer.task_id,
                "answer_name": answer.answer_name,
                "path": None if answer.found is None else str(answer.found.path),
                "score": answer.score,
                "score_by_tree": answer.tree_score,
                "record": _state(answer),
                "findings": [finding._asdict() for finding in answer.findings],
            }
            for answer in answers
        ],
        "summaries": {
            name: [finding._asdict() for finding in findings] for name, findings in summaries.items()
        },
    }
    plain_console().print_json(json.dumps(content))
