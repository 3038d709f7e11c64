"""``mind2web2 export``: results as a flat table, for notebooks and statistics programs."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
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
from mind2web2.cli.console import line, plain_console, warnings_on
from mind2web2.cli.results.chosen import check_record
from mind2web2.cli.settings_file import paths_of, settings_of
from mind2web2.errors import UsageError
from mind2web2.utils.entry_points import load_parts
from mind2web2.utils.names import check_name
from mind2web2.utils.text import counted


def run(options: argparse.Namespace) -> int:
    """Write the table and return the exit status."""
    names = [check_name("agent", name) for name in options.agents]
    if len(set(names)) < len(names):
        raise UsageError("an agent is named twice: name each one once")
    settings = settings_of(options)
    root = paths_of(settings, *names).eval_results_root
    for name in names:
        check_record(settings, root, name)
    console = plain_console()
    for name, export in load_parts("exports").items():
        output = getattr(options, name)
        if output is None:
            continue
        if options.answers or options.anonymous:
            raise UsageError(f"--{name} does not go with --answers or --anonymous")
        with warnings_on(console):
            line(console, export.write(output, names, root))
        return 0
    kind: type[Record] = AnswerRecord if options.answers else LeafRecord
    rows: Callable[[str, Path], Iterable[Record]]
    rows = answer_rows if options.answers else leaf_rows
    records: Iterable[Record] = (record for name in names for record in rows(name, root))
    if options.anonymous:
        records = map(without_texts, records)
    with warnings_on(console):
        count = write_table(options.output, records, kind)
    noun = "answer" if options.answers else "leaf"
    line(console, f"{counted(count, noun)} written to {options.output}")
    return 0
