"""Options that do nothing, or contradict each other, as they are given."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator

from mind2web2.errors import UsageError

BATCH_PROVIDERS = ("openai", "azure_openai")
_OWN_WINDOW = "--cdp_url captures in your own Chrome, whose window is its own affair: leave --headed out"


def check_options(options: argparse.Namespace) -> None:
    """Make sure that each option given for an evaluation has its effect.

    A limit that holds of itself, as ``--max_cost`` does in a replay, is kept and not refused.

    Raises:
        UsageError: says which option to leave out or to add.
    """
    for conflict in _conflicts(options):
        raise UsageError(conflict)


def check_caching_options(options: argparse.Namespace) -> None:
    """Make sure that each option given for caching has its effect.

    Raises:
        UsageError: says which option to leave out.
    """
    given = [f"--{name}" for name in ("judge_model", "judge_base_url") if getattr(options, name, None)]
    if options.no_llm and given:
        raise UsageError(f"--no_llm asks no model: leave {' and '.join(given)} out")
    if options.cdp_url and not options.headless:
        raise UsageError(_OWN_WINDOW)


def _conflicts(options: argparse.Namespace) -> Iterator[str]:
    is_replay = options.llm_provider == "replay"
    if options.judgments is not None and not is_replay:
        yield "--judgments goes with --llm_provider replay"
    if is_replay and options.overwrite:
        yield "--overwrite asks everything anew, --llm_provider replay asks nothing: leave one of them out"
    yield from _batch_conflicts(options)
    yield from _capture_conflicts(options)
    yield from _script_conflicts(options)


def _batch_conflicts(options: argparse.Namespace) -> Iterator[str]:
    if not options.batch:
        if options.batch_poll is not None:
            yield "--batch_poll goes with --batch"
        return
    if options.llm_provider not in BATCH_PROVIDERS:
        yield (
            f"--batch goes with --llm_provider {' or '.join(BATCH_PROVIDERS)}, not {options.llm_provider}: "
            "evaluate without --batch"
        )
    if options.max_llm_requests is not None:
        yield "--max_llm_requests does not bound what is in a batch: leave it out with --batch"


def _capture_conflicts(options: argparse.Namespace) -> Iterator[str]:
    given = [f"--{name}" for name in ("headed", "cdp_url") if getattr(options, name)]
    if not given:
        return
    if options.no_capture:
        yield f"--no_capture captures nothing: leave {' and '.join(given)} out"
    if options.llm_provider == "replay":
        yield f"--llm_provider replay captures nothing: leave {' and '.join(given)} out"
    if len(given) > 1:
        yield _OWN_WINDOW


def _script_conflicts(options: argparse.Namespace) -> Iterator[str]:
    given = [f"--{name}" for name in ("script_memory", "script_env", "as_of") if getattr(options, name)]
    if not given:
        return
    if options.isolate is False:
        yield f"--no_isolate runs scripts in the process of the run: leave {' and '.join(given)} out"
    if options.isolate is None and options.batch:
        yield (
            "with --batch, scripts run in the process of the run: give --isolate, or leave "
            f"{' and '.join(given)} out"
        )
    for name in options.script_env:
        if name not in os.environ:
            yield (
                f"--script_env takes the name of a variable that is set, not {name!r}: set it, or leave "
                "--script_env out"
            )
