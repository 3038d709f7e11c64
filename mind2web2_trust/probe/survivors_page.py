"""One HTML file with the verdicts that stayed.

It shows the claim, the page before and after, and both reasons.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from mind2web2.plugin import ChangedPages

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


def survivors_page(reports: Sequence[ChangedPages]) -> str:
    """Return the page of one judge, or of several, each in a section."""
    return _HEAD + "".join(map(_section, reports)) + "</html>\n"


def _section(report: ChangedPages) -> str:
    stayed = len(report.survivors)
    title = f"{report.judge}: {stayed} of {report.probes} verdicts stayed"
    alarms = len(report.alarms)
    controls = (
        f"<p>{alarms} of {report.false_alarms.count} controls changed, "
        "where the verdict should have stayed.</p>"
    )
    articles = [
        f"<article><h2>{escape(each.claim)}</h2>"
        f"<p>{escape(each.place)}, change of {escape(each.kind)}, on "
        f"<code>{escape(each.url)}</code></p>"
        '<div class="pages">'
        + _side("The page as it was", each.page_before.parts, each.reason_before)
        + _side("The page as it was changed", each.page_after.parts, each.reason_after)
        + "</div></article>\n"
        for each in report.survivors
    ]
    return f"<h1>{escape(title)}</h1>{controls}{''.join(articles)}"


def _side(title: str, parts: tuple[str, str, str], reason: str) -> str:
    before, changed, after = map(escape, parts)
    return (
        f"<div><h3>{title}</h3><blockquote>…{before}"
        f"<mark>{changed or '(removed)'}</mark>{after}…</blockquote>"
        f"<p>The judge: {escape(reason)}</p></div>"
    )
