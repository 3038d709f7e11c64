"""``mind2web2 export``: results as a flat table, for notebooks and statistics programs."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from mind2web2.bridges.tables import (
    AnswerRecord,
    LeafRecord,
    Record,
    answer_rows,
    leaf_rows,
    without_texts,
    write_table,
)
from mind2web2.cli.console import PlainConsole
from mind2web2.cli.options import settings_of
from mind2web2.cli.results.chosen import named_agents
from mind2web2.cli.results.judgments import write_judgments
from mind2web2.errors import UsageError
from mind2web2.results.known_answers import require_results
from mind2web2.runs.settings import RunSettings
from mind2web2.utils.entry_points import load_parts
from mind2web2.utils.text import counted


def run(options: argparse.Namespace) -> int:
    """Write the table and return the exit status."""
    names = named_agents(options)
    settings = settings_of(options)
    root = settings.paths.eval_results_root
    if options.judgments is None:
        for name in names:
            require_results(root, name)
    console = PlainConsole()
    if options.output is None:
        return _write_other(options, names, settings, console)
    kind: type[Record] = LeafRecord
    rows: Callable[[str, Path], Iterable[Record]] = leaf_rows
    noun = "leaf"
    if options.answers:
        kind, rows, noun = AnswerRecord, answer_rows, "answer"
    records: Iterable[Record] = (record for name in names for record in rows(name, root))
    if options.anonymous:
        records = map(without_texts, records)
    with console.show_warnings():
        count = write_table(options.output, records, kind)

    console.print_line(f"{counted(count, noun)} written to {options.output}")
    return 0


def _write_other(
    options: argparse.Namespace,
    names: Sequence[str],
    settings: RunSettings,
    console: PlainConsole,
) -> int:
    """Write something else than a table and return the exit status."""
    if options.answers or options.anonymous:
        raise UsageError("--answers and --anonymous go with -o FILE")
    if options.judgments and len(names) > 1:
        raise UsageError("judgments are of one agent: name one")
    if options.judgments is not None:
        write_judgments(options.judgments, names[0], settings)
        return 0
    for name, export in load_parts("exports").items():
        output = getattr(options, name)
        if output is not None:
            with console.show_warnings():
                console.print_line(export.write(output, names, settings.paths.eval_results_root))
    return 0
