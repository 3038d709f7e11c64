"""``mind2web2 verify-results``: whether every score is right, and still holds."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mind2web2.cli.options import Subcommands, add_folder_options, add_task_option, paths_of, temperature

if TYPE_CHECKING:
    from mind2web2.record_checks import AnswerCheck
    from mind2web2.result_checks import Finding
    from mind2web2.selection import AnswerFile
    from mind2web2.utils.path_config import PathConfig

DESCRIPTION = """\
Check an agent's results against all that they name: every score is computed again from the leaves of its
tree, every verdict from its votes, every vote from the stored judgment; digests of answers, scripts, pages
and of the results themselves are taken again, and the metrics derived again. Nothing is asked or changed.

  mind2web2 verify-results my_agent                   all results
  mind2web2 verify-results my_agent --task_id TASK    those of one task; may be repeated

  wrong      what no run leaves behind, as it was changed by hand or damaged; or a score that a script
             returned in place of the one that its tree comes to
  stale      the answer, script, a page, the judge or the way of asking has changed since
  missing    an answer without a score, or something that a result names and that is not there

Digests show what was changed afterwards; whoever makes a whole new record up, judgments and all, is not
found out. Exit status: 0 everything is right and holds, 1 something is wrong, 2 nothing could be checked,
3 nothing is wrong, but something is stale or missing.
"""

_WRONG, _OUTDATED = 1, 3
_KINDS = ("wrong", "stale", "missing")


def add_command(commands: Subcommands) -> None:
    """Add ``verify-results`` to ``mind2web2``."""
    parser = commands.add_parser(
        "verify-results", help="check that every score is right and still holds", description=DESCRIPTION
    )
    parser.add_argument("agent", metavar="AGENT", help="the agent, a folder under eval_results/")
    add_task_option(parser, "all, with the agent's own summary")
    parser.add_argument(
        "--judgments",
        metavar="FILE",
        type=Path,
        help="a judgments.sqlite3 or exported .jsonl file that votes are looked up in (default: the agent's "
        "own under eval_results/)",
    )
    parser.add_argument(
        "--eval_version", metavar="V", help="version of the eval scripts that counts, as for evaluate"
    )
    _add_judge_options(parser)
    parser.add_argument("--json", action="store_true", help="print what was found as JSON")
    add_folder_options(parser, "answer_folder", "eval_scripts_root", "eval_results_root", "cache_root")
    parser.set_defaults(run=run)


def _add_judge_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "judge", "who should have judged; results of others are stale (default: who judged last)"
    )
    group.add_argument("--judge_model", metavar="M", help="the model")
    group.add_argument("--judge_reasoning_effort", metavar="E", help="such as low, medium or high")
    group.add_argument("--judge_temperature", metavar="T", type=temperature, help="the temperature asked for")


def run(options: argparse.Namespace) -> int:
    """Print what was found and return the exit status."""
    from mind2web2.cli.advice import ALL_TASKS
    from mind2web2.cli.agents import has_record, no_results
    from mind2web2.record_checks import RecordChecks
    from mind2web2.staleness import PresentReader, newest_judge
    from mind2web2.store_checks import judgments_of
    from mind2web2.summary_checks import agent_summary_findings, task_summary_findings
    from mind2web2.utils.names import check_name

    agent_name = check_name("agent", options.agent)
    paths = paths_of(options)
    root = paths.eval_results_root
    if not has_record(root, agent_name):
        raise no_results(options, root, agent_name)
    paths.script_versions()  # a pinned version that does not exist is a mistake of the command
    judge = _judge(options) or newest_judge(root, agent_name)
    checks = RecordChecks(
        root,
        agent_name,
        judgments_of(root, agent_name, options.judgments),
        PresentReader(paths, agent_name, judge=judge),
    )
    answers: list[AnswerCheck] = []
    summaries: dict[str, Sequence[Finding]] = {}
    for task_id, files in _tasks(paths, agent_name, options.task_ids).items():
        answers += checks.task(task_id, files)
        summaries[task_id] = list(task_summary_findings(root, agent_name, task_id))
    if options.task_ids is None:
        summaries[ALL_TASKS] = list(agent_summary_findings(root, agent_name))
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
    """Return the options of this command with which an evaluation makes results that hold."""
    given = {f"judge_{name}": value for name, value in _judge(options).items()}
    if options.eval_version is not None:
        given["eval_version"] = options.eval_version
    return [word for name, value in given.items() for word in (f"--{name}", str(value))]


def _tasks(
    paths: PathConfig, agent_name: str, task_ids: Sequence[str] | None
) -> dict[str, tuple[AnswerFile, ...]]:
    """Return the answers there are now to each task that has answers or results."""
    from mind2web2.errors import UsageError
    from mind2web2.selection import answer_files
    from mind2web2.utils.names import check_name, name_list, natural_key

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
    return {
        name: answer_files(paths.answers_root / agent_name / name)[0]
        for name in sorted(wanted, key=natural_key)
    }


def _has_answers(paths: PathConfig, agent_name: str, task_id: str) -> bool:
    # Other folders lie beside those of tasks, such as that of batch jobs.
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

    from mind2web2.cli.advice import advice
    from mind2web2.cli.console import plain_console

    console = plain_console()
    table = Table(title=f"Results of {options.agent}")
    table.add_column("task", overflow="fold")
    table.add_column("answer", overflow="fold")
    table.add_column("score", justify="right")
    table.add_column("by its tree", justify="right")
    table.add_column("record")
    for answer in answers:
        numbers = (_number(answer.score), _number(answer.tree_score))
        table.add_row(answer.task_id, answer.answer_name.removesuffix(".md"), *numbers, _state(answer))
    console.print(table)
    lines = [
        *_lines(answers, summaries),
        _counts(answers),
        *advice(options.agent, answers, summaries, _judged_by(options)),
    ]
    for line in lines:
        console.print(line, soft_wrap=True)


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
    return "; ".join([f"Answers: {len(states)}", f"right, and hold: {states.count('ok')}", *listed])


def _state(answer: AnswerCheck) -> str:
    return next((kind for kind in _KINDS if answer.has(kind)), "ok")


def _print_json(answers: Sequence[AnswerCheck], summaries: Mapping[str, Sequence[Finding]]) -> None:
    import json

    from mind2web2.cli.console import plain_console

    content = {
        "answers": [
            {
                "task_id": answer.task_id,
                "answer_name": answer.answer_name,
                "path": None if answer.path is None else str(answer.path),
                "score": answer.score,
                "score_by_tree": answer.tree_score,
                "record": _state(answer),
                "cure": answer.cure,
                "findings": [finding._asdict() for finding in answer.findings],
            }
            for answer in answers
        ],
        "summaries": {
            name: [finding._asdict() for finding in findings] for name, findings in summaries.items()
        },
    }
    plain_console().print_json(json.dumps(content))


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}".rstrip("0").rstrip(".") or "0"
