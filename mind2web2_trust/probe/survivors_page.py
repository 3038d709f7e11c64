"""One HTML file with the verdicts that stayed.

It shows the claim, the page before and after, and both reasons.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from mind2web2.plugin import Excerpt, OtherReply
from mind2web2_trust.probe.report import ProbeReport

_HEAD = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Verdicts that stayed</title>
<style>
  :root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
  body { max-width: 75rem; margin: 2rem auto; padding: 0 1rem; }
  article { border-top: 1px solid #8888; padding: 1rem 0; }
  .pages { display: grid; grid-template-columns: 1fr 1fr; gap: 1.5rem; }
  blockquote { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; }
  mark { padding: 0 .15em; }
  h3 { font-size: 1rem; }
</style>
"""


def survivors_page(reports: Sequence[ProbeReport]) -> str:
    """Return the page of one judge, or of several, each in a section."""
    return _HEAD + "".join(map(_section, reports)) + "</html>\n"


def _section(report: ProbeReport) -> str:
    stayed = len(report.survivors)
    title = f"{report.judge}: {stayed} of {report.probes} verdicts stayed"
    alarms = len(report.alarms)
    controls = (
        f"<p>{alarms} of {report.false_alarms.count} controls changed, "
        "where the verdict should have stayed.</p>"
    )
    return f"<h1>{escape(title)}</h1>{controls}" + "".join(map(_article, report.survivors))


def _article(survivor: OtherReply) -> str:
    return (
        f"<article><h2>{escape(survivor.claim)}</h2>"
        f"<p>{escape(survivor.place)}, change of {escape(survivor.kind)}, on "
        f"<code>{escape(survivor.url)}</code></p>"
        '<div class="pages">'
        + _side("The page as it was", survivor.page_before, survivor.reason_before)
        + _side("The page as it was changed", survivor.page_after, survivor.reason_after)
        + "</div></article>\n"
    )


def _side(title: str, excerpt: Excerpt, reason: str) -> str:
    return (
        f"<div><h3>{title}</h3><blockquote>…{escape(excerpt.before)}"
        f"<mark>{escape(excerpt.changed) or '(removed)'}</mark>{escape(excerpt.after)}…</blockquote>"
        f"<p>The judge: {escape(reason)}</p></div>"
    )
