"""The output of ``mind2web2 probe``."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from mind2web2.plugin import OtherReply, Share, counted, line, percent
from mind2web2_trust.probe.report import ProbeReport

_SURVIVORS_SHOWN = 5


def print_report(console: Console, report: ProbeReport, unquoted: int, *, shows_all: bool) -> None:
    """Print the figures of one judge, and verdicts that stayed.

    Args:
        unquoted: claims that passed without a quotation from the page's text.
        shows_all: print each verdict that stayed.
    """
    probes, claims = counted(report.probes, "probe"), counted(report.claims, "claim")
    line(console, f"{report.judge} on {report.agent}: {probes} of {claims}, by the text of pages")
    console.print(_table(report))
    line(
        console,
        f"The judge would pass {_percent(report.false_passes)} of claims that a page does not "
        f"support (95% interval {_interval(report.false_passes)}), if it reads other pages as it "
        "read these.",
    )
    line(
        console,
        f"Controls, where the verdict must stay: {_percent(report.false_alarms)} of "
        f"{report.false_alarms.count} changed.",
    )
    line(console, _left_out(report, unquoted))
    if report.failed:
        failed = counted(report.failed, "probe")
        line(console, f"{failed} failed; the same command asks only for these.")
    shown = report.survivors if shows_all else report.survivors[:_SURVIVORS_SHOWN]
    for survivor in shown:
        _print_survivor(console, survivor)
    more = len(report.survivors) - len(shown)
    if more:
        line(console, f"{more} more verdicts stayed: --survivors prints all.")


def _table(report: ProbeReport) -> Table:
    table = Table("change", "probes", "noticed", "95% interval")
    for kind, share in (*report.by_kind.items(), ("all", report.noticed)):
        table.add_row(kind, str(share.count), _percent(share), _interval(share))
    return table


def _left_out(report: ProbeReport, unquoted: int) -> str:
    changes = counted(sum(report.discarded.values()), "change")
    return (
        f"Left out: {counted(unquoted, 'claim')} that passed without a quotation from the page's "
        f"text, as by a screenshot, and {changes} after which the page might still support the "
        "claim."
    )


def _print_survivor(console: Console, survivor: OtherReply) -> None:
    line(console, "")
    line(console, f"Not read from the page: {survivor.place} ({survivor.kind})")
    line(console, f"  claim:      {survivor.claim}")
    line(console, f"  address:    {survivor.url}")
    line(console, f"  page was:   {survivor.page_before}")
    line(console, f"  page is:    {survivor.page_after}")
    line(console, f"  the judge:  {survivor.reason_after}")


def _percent(share: Share) -> str:
    return "-" if share.value is None else percent(share.value)


def _interval(share: Share) -> str:
    if share.low is None or share.high is None:
        return "too few pages"
    return f"{percent(share.low)} to {percent(share.high)}"
