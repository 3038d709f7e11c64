"""Amounts by task: a table on a terminal, plain lines elsewhere."""

import io

import pytest
from rich.console import Console

from mind2web2.cli.console import print_amounts

ROWS = {"lake": ("4", "$0.10"), "hill": ("12", "$0.25")}


def printed(*, is_terminal):
    """Return the lines that are printed."""
    stream = io.StringIO()
    console = Console(
        file=stream, force_terminal=is_terminal, no_color=True, width=100, markup=False
    )
    print_amounts(console, "Judge use", "task", ("asked", "dollars"), ROWS)
    return stream.getvalue().splitlines()


def test_elsewhere_each_task_is_a_line():
    """That says what each number is."""
    assert printed(is_terminal=False) == [
        "Judge use: lake: asked 4, dollars $0.10",
        "Judge use: hill: asked 12, dollars $0.25",
    ]


@pytest.mark.parametrize(
    "cells", [("task", "asked", "dollars"), ("lake", "4", "$0.10"), ("hill", "12")]
)
def test_on_a_terminal_it_is_a_table(cells):
    """With a heading and a row for each task."""
    assert any(all(cell in line for cell in cells) for line in printed(is_terminal=True))
