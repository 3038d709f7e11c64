"""The judge's replies of an agent, to and from a file."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from mind2web2.cli.console import PlainConsole
from mind2web2.cli.options import settings_of
from mind2web2.errors import UsageError
from mind2web2.judge.record import JudgeIdentity
from mind2web2.judge.store import STORE_NAME, JudgmentStore
from mind2web2.judge.transfer import export_judgments, judgments_named, read_judgments
from mind2web2.results.stored_results import latest_results
from mind2web2.runs.settings import RunSettings
from mind2web2.utils.names import check_name
from mind2web2.utils.program import command_line
from mind2web2.utils.text import counted


def write_judgments(output: Path, agent_name: str, settings: RunSettings) -> None:
    """Write an agent's judgments to a file, and print how to score the same answers from it.

    Raises:
        UsageError: there are none.
        OSError: the file cannot be written.
    """
    if output.suffix != ".jsonl":
        raise UsageError(f"{output}: a file of judgments ends in .jsonl")
    eval_results_root = settings.paths.eval_results_root
    store_path = eval_results_root / agent_name / STORE_NAME
    if not store_path.is_file():
        evaluate = command_line("evaluate", agent_name, *settings.options())
        raise UsageError(
            f"no judgments at {store_path}: run {evaluate} first, or copy the file from which the "
            "results were replayed"
        )
    with JudgmentStore(store_path) as store:
        keys = set(export_judgments(store, output))
        judges = store.identities()
    used: set[str] = set()
    for _, _, result in latest_results(eval_results_root, agent_name):
        used |= judgments_named(result.content.document)
    console = PlainConsole()
    in_use = len(keys & used)
    console.print_line(
        f"{counted(len(keys), 'judgment')} written to {output}; the newest results use "
        f"{in_use} of them",
    )
    replay = (*settings.options(), "--llm_provider", "replay", "--judgments", str(output))
    for judge in judges:
        command = command_line("evaluate", agent_name, *replay, *_options_for(judge, judges))
        if len(judges) > 1:
            of_judge = f" by {' '.join(judge.in_words())}"
        else:
            of_judge = ""
        console.print_line(f"To score the same answers{of_judge} from this file: {command}")


def _options_for(judge: JudgeIdentity, judges: Sequence[JudgeIdentity]) -> list[str]:
    """Return the options that select one of several judges of a file.

    None where it is the only one.
    """
    if len(judges) == 1:
        return []
    words = ["--judge_model", judge.model]
    for name in ("reasoning_effort", "temperature", "extra_body"):
        if getattr(judge, name) is not None:
            words += [f"--judge_{name}", str(getattr(judge, name))]
    if len({other.endpoint for other in judges}) > 1:
        words += ["--judge_base_url", judge.endpoint.rpartition(" ")[2]]
    return words


def run_import(options: argparse.Namespace) -> int:
    """Add a file's judgments to the agent's."""
    root = settings_of(options).paths.eval_results_root
    path = root / check_name("agent", options.agent) / STORE_NAME
    judgments = list(read_judgments(options.file))
    with JudgmentStore(path) as store:
        added, total = store.add(judgments), len(judgments)
    PlainConsole().print_line(f"new judgments in {path}: {added:,} of {total:,}")
    return 0
