"""The output of ``mind2web2 probe``."""

from __future__ import annotations

from rich.table import Table

from mind2web2.plugin import (
    ChangedPages,
    PlainConsole,
    counted,
)

_SURVIVORS_SHOWN = 5


def print_report(
    console: PlainConsole, report: ChangedPages, unquoted: int, *, shows_all: bool
) -> None:
    """Print the figures of one judge, and verdicts that stayed.

    Args:
        unquoted: claims that passed without a quotation from the page's text.
        shows_all: print each verdict that stayed.
    """
    probes, claims = counted(report.probes, "probe"), counted(report.claims, "claim")
    console.print_line(
        f"{report.judge} on {report.agent}: {probes} of {claims}, by the text of pages"
    )
    console.print(_table(report))
    console.print_line(
        f"The judge would pass {report.false_passes} of claims that a page does not support, if "
        "it reads other pages as it read these.",
    )
    console.print_line(
        f"Controls, where the verdict must stay: {report.false_alarms} of "
        f"{report.false_alarms.count} changed.",
    )
    console.print_line(_left_out(report, unquoted))
    if report.failed:
        failed = counted(report.failed, "probe")
        console.print_line(f"{failed} failed; the same command asks only for these.")
    shown = report.survivors if shows_all else report.survivors[:_SURVIVORS_SHOWN]
    for survivor in shown:
        console.print_line("")
        console.print_line(f"Not read from the page: {survivor.place} ({survivor.kind})")
        console.print_line(f"  claim:      {survivor.claim}")
        console.print_line(f"  address:    {survivor.url}")
        console.print_line(f"  page was:   {survivor.page_before}")
        console.print_line(f"  page is:    {survivor.page_after}")
        console.print_line(f"  the judge:  {survivor.reason_after}")
    more = len(report.survivors) - len(shown)
    if more:
        console.print_line(f"{more} more verdicts stayed: --survivors prints all.")


def _table(report: ChangedPages) -> Table:
    table = Table("change", "probes", "noticed (95% interval)")
    for kind, share in (*report.by_kind.items(), ("all", report.noticed)):
        table.add_row(kind, str(share.count), str(share))
    return table


def _left_out(report: ChangedPages, unquoted: int) -> str:
    changes = counted(sum(report.discarded.values()), "change")
    return (
        f"Left out: {counted(unquoted, 'claim')} that passed without a quotation from the page's "
        f"text, as by a screenshot, and {changes} after which the page might still support the "
        "claim."
    )
