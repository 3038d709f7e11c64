"""``mind2web2 verify-results``: whether every score is correct and up to date."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mind2web2.cli.metrics import has_record, no_results
from mind2web2.cli.options import (
    Subcommands,
    add_folder_options,
    add_task_option,
    evaluation_options,
    paths_of,
    suggested_evaluation,
    temperature,
)
from mind2web2.errors import UsageError
from mind2web2.utils.names import check_name, name_list, natural_key

if TYPE_CHECKING:
    from mind2web2.runs.verification import AnswerCheck, Cure, Finding
    from mind2web2.utils.path_config import PathConfig

DESCRIPTION = """\
Check an agent's results: each is judged again in a temporary folder, from the stored judgments, and its tree,
votes and score are compared; so are the digests of answer, script, pages and the script's other inputs, the
result's own checksum, and the metrics. No judge is asked, and no file of yours is changed.

  mind2web2 verify-results my_agent                   all results
  mind2web2 verify-results my_agent --task_id TASK    those of one task; may be repeated

  wrong      a result that was changed or damaged, or does not follow from its judgments; or a script that
             returned another score than its tree has
  stale      answer, script, a page, another input of the script, the judge or its questions have changed
  missing    an answer without a score, or a page or judgment that a result names and that is not stored

Checksums show accidents; results that were forged together with all their judgments are not detected.
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


def run(options: argparse.Namespace) -> int:
    """Print the findings and return the exit status."""
    from mind2web2.runs.freshness import newest_judge
    from mind2web2.runs.verification import agent_findings, summary_findings, verified

    agent_name = check_name("agent", options.agent)
    paths = paths_of(options)
    root = paths.eval_results_root
    if not has_record(root, agent_name):
        raise no_results(options, root, agent_name)
    paths.script_versions()  # raises where a pinned version does not exist
    if options.judgments is not None and not options.judgments.is_file():
        raise UsageError(
            f"no judgments at {options.judgments}: name a judgments.sqlite3 or an exported .jsonl file"
        )
    judge = _judge(options) or newest_judge(root, agent_name)
    task_ids = _tasks(paths, agent_name, options.task_ids)
    answers = verified(paths, agent_name, task_ids, judge=judge, judgments=options.judgments)
    summaries = {task_id: summary_findings(paths, agent_name, task_id) for task_id in task_ids}
    if options.task_ids is None:
        summaries[_ALL_TASKS] = agent_findings(paths, agent_name)
    if options.json:
        _print_json(answers, summaries)
    else:
        _print(options, answers, summaries)
    return _status(answers, summaries)


def _judge(options: argparse.Namespace) -> dict[str, Any]:
    given = {
        "model": options.judge_model,
        "reasoning_effort": options.judge_reasoning_effort,
        "temperature": options.judge_temperature,
    }
    return {name: value for name, value in given.items() if value is not None}


def _judged_by(options: argparse.Namespace) -> list[str]:
    """Return the judge's options of this command, for an evaluation by the same judge."""
    given = {f"--judge_{name}": str(value) for name, value in _judge(options).items()}
    return [word for item in given.items() for word in item]


def _tasks(paths: PathConfig, agent_name: str, task_ids: Sequence[str] | None) -> list[str]:
    """Return the tasks that have answers or results, or those named."""
    folders = (paths.answers_root / agent_name, paths.eval_results_root / agent_name)
    found = {
        path.name
        for folder in folders
        if folder.is_dir()
        for path in folder.iterdir()
        if path.is_dir() and not path.name.startswith(".")
    }
    known = {name for name in found if _has_answers(paths, agent_name, name)}
    wanted = known if task_ids is None else {check_name("task", task_id) for task_id in task_ids}
    if not wanted <= known or not known:
        lacking = name_list(wanted - known) if wanted else "any task"
        raise UsageError(
            f"no answers or results of agent {agent_name} to {lacking}: there is {name_list(known)}"
        )
    return sorted(wanted, key=natural_key)


def _has_answers(paths: PathConfig, agent_name: str, task_id: str) -> bool:
    # There are folders beside those of tasks, such as that of batch jobs.
    of_results = (paths.eval_results_root / agent_name / task_id).glob("*/results")
    return (paths.answers_root / agent_name / task_id).is_dir() or any(of_results)


def _status(answers: Sequence[AnswerCheck], summaries: Mapping[str, Sequence[Finding]]) -> int:
    found = {finding.kind for answer in answers for finding in answer.findings}
    found |= {finding.kind for findings in summaries.values() for finding in findings}
    if "wrong" in found:
        return _WRONG
    return _OUTDATED if found else 0


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
    suggestions = _suggestions(options, answers, summaries)
    for text in (*_lines(answers, summaries), _counts(answers), *suggestions):
        line(console, text)


def _suggestions(
    options: argparse.Namespace, answers: Sequence[AnswerCheck], summaries: Mapping[str, Sequence[Finding]]
) -> list[str]:
    """Return one line for each way to correct the findings, with the answers that it is for."""
    by_way: dict[tuple[Cure, tuple[str, ...]], list[AnswerCheck]] = {}
    for answer in answers:
        if answer.findings:
            # The cure of the gravest finding corrects the others as well.
            worst = min(answer.findings, key=lambda finding: _KINDS.index(finding.kind))
            way = (worst.cure, tuple(evaluation_options(answer.content)))
            by_way.setdefault(way, []).append(answer)
    lines = [
        f"Next, for {', '.join(f'{each.task_id}/{each.answer_name}' for each in some)}: "
        f"{_suggestion(options, cure, some, answers)}"
        for (cure, _), some in by_way.items()
    ]
    names = [name for name, findings in summaries.items() if findings]
    if names and not lines:
        lines.append(f"Next, for {', '.join(names)}: {_suggestion(options, 'summaries', answers, answers)}")
    return lines


def _suggestion(
    options: argparse.Namespace, cure: Cure, some: Sequence[AnswerCheck], answers: Sequence[AnswerCheck]
) -> str:
    tasks = {answer.task_id: None for answer in some}
    is_all = options.task_ids is None and len(tasks) == len({answer.task_id for answer in answers})
    words = [] if is_all else [word for task_id in tasks for word in ("--task_id", task_id)]
    # An answer without a result of its own is judged as the others were.
    like = next((each.content for each in (*some, *answers) if each.content.get("provenance")), None)
    evaluate = partial(suggested_evaluation, options, options.agent, like, *words, *_judged_by(options))
    if cure == "overwrite":
        return f"{evaluate('--overwrite')} (asks all its judgments again)"
    if cure == "judgments":
        return f"name their file with --judgments FILE, or ask again: {evaluate('--overwrite')}"
    if cure == "script":
        return "find out why the eval script returns another score than its tree has"
    if cure == "answer":
        return "put the answer back in its place, or remove its folder of results"
    return evaluate()


def _lines(answers: Sequence[AnswerCheck], summaries: Mapping[str, Sequence[Finding]]) -> list[str]:
    by_finding: dict[Finding, list[str]] = {}
    for answer in answers:
        for finding in answer.findings:
            by_finding.setdefault(finding, []).append(f"{answer.task_id}/{answer.answer_name}")
    for name, findings in summaries.items():
        for finding in findings:
            by_finding.setdefault(finding, []).append(name)
    in_order = sorted(by_finding.items(), key=lambda item: _KINDS.index(item[0].kind))
    return [
        f"{finding.kind.capitalize()}: {', '.join(names)}: {' '.join(finding.text.split())}"
        for finding, names in in_order
    ]


def _counts(answers: Sequence[AnswerCheck]) -> str:
    states = [_state(answer) for answer in answers]
    listed = [f"{states.count(kind)} {kind}" for kind in _KINDS if kind in states]
    return "; ".join([f"Answers: {len(states)}", f"correct and up to date: {states.count('ok')}", *listed])


def _state(answer: AnswerCheck) -> str:
    return next((kind for kind in _KINDS if any(finding.kind == kind for finding in answer.findings)), "ok")


def _print_json(answers: Sequence[AnswerCheck], summaries: Mapping[str, Sequence[Finding]]) -> None:
    import json

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

