"""Amounts by task: a table on a terminal, a plain line for each task elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table


def print_amounts(
    console: Console, title: str, what: str, columns: Sequence[str], rows: Mapping[str, Sequence[str]]
) -> None:
    """Print rows of amounts by name, ``what`` saying what the names are of."""
    if not console.is_terminal:
        for name, cells in rows.items():
            amounts = ", ".join(f"{column} {cell}" for column, cell in zip(columns, cells, strict=True))
            console.print(f"{title}: {name}: {amounts}", soft_wrap=True)
        return
    table = Table(title=title)
    table.add_column(what, overflow="fold")
    for column in columns:
        table.add_column(column, justify="right", overflow="fold")
    for name, cells in rows.items():
        table.add_row(name, *cells)
    console.print(table)
