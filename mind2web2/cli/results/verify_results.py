"""``mind2web2 verify-results``: whether every score is correct and up to date."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mind2web2.cli.options import (
    Subcommands,
    add_folder_options,
    add_json_option,
    add_settings,
    add_task_option,
)
from mind2web2.cli.results.chosen import check_record
from mind2web2.cli.settings_file import paths_of, settings_of
from mind2web2.cli.suggestions import suggested_evaluation
from mind2web2.errors import UsageError
from mind2web2.runs.settings import REPLAY, SETTINGS, RunSettings
from mind2web2.utils.json_fields import JsonObject
from mind2web2.utils.names import check_name, name_list, natural_key
from mind2web2.utils.values import local_path

if TYPE_CHECKING:
    from mind2web2.runs.provenance import Provenance
    from mind2web2.runs.verification import Check, Cure, Finding
    from mind2web2.utils.path_config import PathConfig

_JUDGE = (
    "judge_model",
    "judge_reasoning_effort",
    "judge_temperature",
    "judge_extra_body",
)
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


def add_command(commands: Subcommands) -> None:
    """Add ``verify-results`` to ``mind2web2``."""
    parser = commands.add_parser(
        "verify-results",
        help="check that every score is correct and up to date",
        description=DESCRIPTION,
    )
    parser.add_argument(
        "agent", metavar="AGENT", help="the agent, a folder under eval_results/"
    )
    add_task_option(parser, "all, with the agent's own summary")
    judgments = replace(
        SETTINGS["judgments"],
        help="a judgments.sqlite3 or exported .jsonl file with the votes",
        parse=local_path,
        metavar="FILE",
        group="",
    )
    add_settings(parser, ["judgments", "eval_version"], changed=[judgments])
    _add_judge_options(parser)
    add_json_option(parser, "the findings")
    add_folder_options(parser)
    parser.set_defaults(run=run)


def _add_judge_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "judge",
        "the expected judge; results of others are stale (default: the judge of the newest result)",
    )
    changed = [replace(SETTINGS[name], default_text="") for name in _JUDGE]
    add_settings(parser, _JUDGE, changed=changed, group=group)


def run(options: argparse.Namespace) -> int:
    """Print the findings and return the exit status."""
    from mind2web2.runs.verification import summaries_checked, verified

    agent_name = check_name("agent", options.agent)
    settings = settings_of(options)
    paths = paths_of(settings, agent_name)
    check_record(settings, paths.eval_results_root, agent_name)
    paths.script_versions()  # raises where a pinned version does not exist
    judgments = None if settings.judgments is None else Path(settings.judgments)
    if judgments is not None and not judgments.is_file():
        raise UsageError(
            f"no judgments at {judgments}: name a judgments.sqlite3 or an exported .jsonl file"
        )
    task_ids = _tasks(paths, agent_name, settings.task_ids or None)
    answers = verified(
        paths, agent_name, task_ids, judge=_judge(settings), judgments=judgments
    )
    places = task_ids if settings.task_ids else (*task_ids, None)
    summaries = [summaries_checked(paths, agent_name, task_id) for task_id in places]
    if options.json:
        _print_json(answers, summaries)
    else:
        _print(settings, agent_name, answers, summaries)
    kinds = {
        finding.kind for check in (*answers, *summaries) for finding in check.findings
    }
    return _WRONG if "wrong" in kinds else _OUTDATED if kinds else 0


def _judge(settings: RunSettings) -> JsonObject:
    from mind2web2.judge.settings import keyed_part

    given = {
        "model": settings.judge_model,
        "reasoning_effort": settings.judge_reasoning_effort,
        "temperature": settings.judge_temperature,
        "extra_body": keyed_part(settings.judge_extra_body),
    }
    return {name: value for name, value in given.items() if value is not None}


def _tasks(
    paths: PathConfig, agent_name: str, task_ids: Sequence[str] | None
) -> list[str]:
    """Return the tasks that have answers or results, or those named."""
    answered = {
        folder.name for folder in (paths.answers_root / agent_name).glob("[!.]*/")
    }
    known = answered | {
        path.parts[-3]
        for path in (paths.eval_results_root / agent_name).glob("*/*/results")
    }
    wanted = (
        known
        if task_ids is None
        else {check_name("task", task_id) for task_id in task_ids}
    )
    if not wanted <= known or not known:
        lacking = name_list(wanted - known) if wanted else "any task"
        raise UsageError(
            f"no answers or results of agent {agent_name} to {lacking}: there is {name_list(known)}"
        )
    return sorted(wanted, key=natural_key)


def _state(check: Check) -> str:
    return "ok" if check.gravest is None else check.gravest.kind


def _print(
    settings: RunSettings,
    agent_name: str,
    answers: Sequence[Check],
    summaries: Sequence[Check],
) -> None:
    from rich.table import Table

    from mind2web2.cli.console import line, number, plain_console
    from mind2web2.runs.verification import KINDS

    console = plain_console()
    table = Table(title=f"Results of {agent_name}")
    for heading in ("task", "answer", "score", "recomputed", "state"):
        is_number = heading in ("score", "recomputed")
        table.add_column(
            heading, justify="right" if is_number else "left", overflow="fold"
        )
    by_finding: dict[Finding, list[str]] = {}
    for check in (*answers, *summaries):
        for finding in check.findings:
            by_finding.setdefault(finding, []).append(check.place)
    for check in answers:
        task_id, _, stem = check.place.removesuffix(".md").rpartition("/")
        numbers = (number(check.score), number(check.recomputed_score))
        table.add_row(task_id, stem, *numbers, _state(check))
    console.print(table)
    for finding, places in sorted(
        by_finding.items(), key=lambda item: KINDS.index(item[0].kind)
    ):
        text = " ".join(finding.text.split())
        line(console, f"{finding.kind.capitalize()}: {', '.join(places)}: {text}")
    states = [_state(check) for check in answers]
    counts = [f"{states.count(kind)} {kind}" for kind in KINDS if kind in states]
    correct = f"correct and up to date: {states.count('ok')}"
    line(console, "; ".join([f"Answers: {len(states)}", correct, *counts]))
    by_cure: dict[Cure, list[Check]] = {}
    # The remedy of an answer writes the summaries again.
    for check in [check for check in answers if check.findings] or summaries:
        if check.gravest is not None:
            by_cure.setdefault(check.gravest.cure, []).append(check)
    for cure, some in by_cure.items():
        suggestion = _suggestion(settings, agent_name, cure, some, answers)
        line(
            console,
            f"Next, for {', '.join(check.place for check in some)}: {suggestion}",
        )


def _suggestion(
    settings: RunSettings,
    agent_name: str,
    cure: Cure,
    some: Sequence[Check],
    answers: Sequence[Check],
) -> str:
    if cure == "script":
        return (
            "see why the eval script returns another score than its rubric tree gives"
        )
    if cure == "answer":
        return "put the answer back in its place, or remove its folder of results"
    tasks = dict.fromkeys(check.task_id for check in some)
    is_all = None in tasks or tasks.keys() == {check.task_id for check in answers}
    if not settings.task_ids and is_all:
        tasks = {}
    words = [word for task_id in tasks for word in ("--task_id", str(task_id))]
    words += ["--overwrite"] if cure in ("overwrite", "judgments") else []
    # An answer without a result of its own is judged as the others were.
    like = next(
        (check.made_from for check in (*some, *answers) if check.made_from is not None),
        None,
    )
    expected = _judge(settings)
    if "--overwrite" in words or expected:
        like = _asked_by_a_judge(like)
    if like is None:
        words += [
            word
            for name, value in expected.items()
            for word in (f"--judge_{name}", str(value))
        ]
    else:
        like = like.model_copy(update={"judge": like.judge.model_copy(update=expected)})
    evaluate = suggested_evaluation(settings, agent_name, like, *words)
    if cure == "judgments":
        return f"name their file with --judgments FILE, or ask again: {evaluate}"
    return (
        f"{evaluate} (asks all its judgments again)"
        if cure == "overwrite"
        else evaluate
    )


def _asked_by_a_judge(made_from: Provenance | None) -> Provenance | None:
    """Return the provenance of a replayed result as one of the default provider: a replay asks nothing."""
    if made_from is None or made_from.judge.provider != REPLAY:
        return made_from
    judge = made_from.judge.model_copy(update={"provider": "openai"})
    return made_from.model_copy(update={"judge": judge, "replayed_from": None})


def _print_json(answers: Sequence[Check], summaries: Sequence[Check]) -> None:
    from mind2web2.cli.console import plain_console

    content = {
        "answers": [
            {
                "task_id": check.task_id,
                "answer_name": check.answer_name,
                "path": None if check.found is None else str(check.found.path),
                "score": check.score,
                "score_by_tree": check.score_by_tree,
                "replayed_score": check.replayed_score,
                "record": _state(check),
                "findings": [finding._asdict() for finding in check.findings],
            }
            for check in answers
        ],
        "summaries": {
            check.place: [finding._asdict() for finding in check.findings]
            for check in summaries
        },
    }
    plain_console().print_json(json.dumps(content))
