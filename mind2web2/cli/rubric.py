"""``mind2web2 rubric``: rubric files shown, and turned into scripts."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mind2web2.cli.console import line, plain_console
from mind2web2.errors import UsageError
from mind2web2.scripts.rubric_outline import tree_lines
from mind2web2.scripts.rubric_reading import read_rubric
from mind2web2.scripts.rubric_script import script_of
from mind2web2.utils.files import write_whole


def run_show(options: argparse.Namespace) -> int:
    """Print the tree and return the exit status."""
    rubric = read_rubric(_existing(options.file)).rubric
    console = plain_console()
    for text in tree_lines(rubric):
        line(console, text)
    return 0


def run_script(options: argparse.Namespace) -> int:
    """Write the script and return the exit status."""
    return _write(options.output, script_of(read_rubric(_existing(options.file)).rubric))


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise UsageError(f"no rubric file {path}")
    return path


def _write(path: Path | None, text: str) -> int:

    if path is None:
        sys.stdout.write(text)
    elif path.exists():
        raise UsageError(f"{path} is there already: name another file")
    else:
        write_whole(path, text)
    return 0
