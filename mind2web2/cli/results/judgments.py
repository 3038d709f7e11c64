"""``mind2web2 judgments``: hand the judge's replies on."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from mind2web2.cli.console import line, plain_console
from mind2web2.cli.settings_file import paths_of, settings_of
from mind2web2.cli.suggestions import suggested_command
from mind2web2.errors import UsageError
from mind2web2.judge.judgment import JudgeIdentity
from mind2web2.judge.store import FILE_NAME, JudgmentStore
from mind2web2.judge.transfer import export_judgments, judgments_named, read_judgments
from mind2web2.results.stored_results import latest_results
from mind2web2.runs.session import open_shared_store
from mind2web2.runs.settings import RunSettings
from mind2web2.utils.names import check_name
from mind2web2.utils.text import counted


def run_export(options: argparse.Namespace) -> int:
    """Write the agent's judgments to a file."""
    settings = settings_of(options)
    store_path = _store_path(settings, options.agent)
    if not store_path.is_file():
        evaluate = suggested_command(settings, "evaluate", options.agent)
        raise UsageError(f"no judgments at {store_path}: run {evaluate} first")
    with JudgmentStore(store_path) as store:
        try:
            keys = set(export_judgments(store, options.file))
            judges = store.identities()
        except OSError as error:
            raise UsageError(f"cannot write {options.file}: {error.strerror}") from error
    used: set[str] = set()
    for _, _, found in latest_results(store_path.parent.parent, options.agent):
        used |= judgments_named(found.content.document)
    console = plain_console()
    in_use = len(keys & used)
    line(
        console,
        f"{counted(len(keys), 'judgment')} written to {options.file}; the newest results use "
        f"{in_use} of them",
    )
    replay = ("--llm_provider", "replay", "--judgments", str(options.file))
    for judge in judges:
        command = suggested_command(
            settings, "evaluate", options.agent, *replay, *_options_for(judge, judges)
        )
        if len(judges) > 1:
            of_judge = f" by {' '.join(judge.in_words())}"
        else:
            of_judge = ""
        line(console, f"To score the same answers{of_judge} from this file: {command}")
    return 0


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
    path = _store_path(settings_of(options), options.agent)
    if "://" in options.file:
        with open_shared_store(path, options.file) as shared:
            added, total = shared.copy_all()
    else:
        judgments = list(read_judgments(Path(options.file)))
        with JudgmentStore(path) as store:
            added, total = store.add(judgments), len(judgments)
    line(plain_console(), f"new judgments: {added:,} of {total:,}")
    return 0


def _store_path(settings: RunSettings, agent_name: str) -> Path:

    return (
        paths_of(settings, agent_name).eval_results_root
        / check_name("agent", agent_name)
        / FILE_NAME
    )
