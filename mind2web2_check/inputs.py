"""A report's text, from markdown, HTML, DOCX, PDF or standard input.

Other forms become markdown.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Collection
from pathlib import Path

from mind2web2.plugin import (
    FetchedDocument,
    Mind2Web2Error,
    UsageError,
    run_in_worker,
    uniform_text,
)
from mind2web2_check.html_text import html_text
from mind2web2_check.pdf import pdf_markdown
from mind2web2_check.statements import ReadReport, read_report

STANDARD_INPUT = "-"
PATH_NAME = "report_path"
# Names of agents have 200 at most, and a number may follow.
_MAX_NAME_BYTES = 190
_TIMEOUT_S = 60.0
_MAX_BYTES = 100 * 1024**2
_SNIFFED_BYTES = 4096
_CHARSET = re.compile(rb"<meta\b[^<>]*?\bcharset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
# Markdown may have lists and tables as HTML.
_HTML_BLOCKS = re.compile(
    r"^[ \t]*<(ol|ul|table|dl|h[1-6])\b[^<>]*>.*?(?:(</\1\s*>)|\Z)",
    re.IGNORECASE | re.DOTALL | re.MULTILINE,
)
_WIKI_NOTE = re.compile(
    r"<ref(?:\s+(?:name\s*=\s*[\"']?(?P<name>[^\"'<>/]{1,60})[\"']?|[^<>/]*))?\s*(?:/>|>(?P<note>(?:(?!<ref\b).){0,4000}?)</ref\s*>)",
    re.IGNORECASE | re.DOTALL,
)
_HTML_START = re.compile(
    rb"\s*(?:\xef\xbb\xbf)?\s*<(?:!doctype html|html|head|body)\b", re.IGNORECASE
)


def report_name(report: str) -> str:
    """Return the name under which a report's results are kept."""
    if report == STANDARD_INPUT:
        return "standard-input"
    name = re.sub(r"[^\w.-]+", "-", Path(report).stem)
    return name.encode()[:_MAX_NAME_BYTES].decode(errors="ignore").strip("-.") or "report"


def free_name(report: str, checks: Path, taken: Collection[str]) -> str:
    """Return a report's name, with a number if the name is taken or another report's.

    Each folder has the path of its report, so that the next check of a file finds its own results.
    """
    wanted = name = report_name(report)
    number = 1
    while name in taken or _is_of_other(checks / name, report):
        number += 1
        name = f"{wanted}-{number}"
    return name


def path_from(folder: Path, report: str) -> bytes:
    """Return a report's path from a folder, so that both may move together."""
    return os.fsencode(os.path.relpath(report, folder))


def _is_of_other(folder: Path, report: str) -> bool:
    file = folder / PATH_NAME
    earlier = file.read_bytes() if file.is_file() else path_from(folder, report)
    return earlier != path_from(folder, report) and (folder / os.fsdecode(earlier)).is_file()


def report_in(report: str) -> tuple[str, ReadReport]:
    """Return the text of a report, each line of which ends in one character, and its statements.

    They are read in a process with limits of time and memory, since the file may be hostile.

    Raises:
        UsageError: it cannot be read, or is none of the known formats.
    """
    data = _read(report)
    try:
        name = Path(report).name
        call = run_in_worker(reading, data, name, timeout_s=_TIMEOUT_S)
        return asyncio.run(call)
    except Mind2Web2Error as error:
        raise UsageError(f"cannot read {report}: {error}") from error


def reading(data: bytes, name: str) -> tuple[str, ReadReport]:
    """Return a report as text, and what is read from it."""
    # PDFium gives signs beyond 16 bits in halves; others stand for nothing.
    whole = _as_text(data, name).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    text = uniform_text(whole)
    if not text.strip():
        raise UsageError("it has no text to check")
    return text, read_report(text)


def _read(report: str) -> bytes:
    if report == STANDARD_INPUT:
        return sys.stdin.buffer.read(_MAX_BYTES)
    if report.startswith(("http://", "https://")):
        raise UsageError(f"cannot read {report}: save the page, and give the file")
    with UsageError.unable_to(f"read {report}"), Path(report).open("rb") as file:
        data = file.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise UsageError(f"{report} is larger than {_MAX_BYTES // 1024**2} MB")
    return data


def _as_text(data: bytes, name: str) -> str:
    if data.startswith(b"%PDF"):
        return pdf_markdown(data)
    if data.startswith(b"PK\3\4"):
        return html_text(FetchedDocument(name, "", data).office_text())
    head = data[:_SNIFFED_BYTES]
    is_named = name.lower().endswith((".html", ".htm"))
    if b"\0" in head and not head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise UsageError("it is not markdown, HTML, DOCX or PDF")
    if name.lower().endswith((".pdf", ".docx")):
        raise UsageError(f"it is not a {name[-4:].lstrip('.').upper()} file")
    declared = _CHARSET.search(head) if is_named or _HTML_START.match(data) else None
    charset = f"; charset={declared[1].decode('latin-1')}" if declared else ""
    text = FetchedDocument(name, f"text/html{charset}", data).text()
    if is_named or _HTML_START.match(text[:_SNIFFED_BYTES].encode()):
        return html_text(text)
    return _HTML_BLOCKS.sub(_as_markdown, _with_footnotes(text))


def _as_markdown(block: re.Match[str]) -> str:
    return f"\n\n{html_text(block[0])}\n" if block[2] else block[0]


def _with_footnotes(text: str) -> str:
    """Return a wiki's text with its notes, ``<ref name="x">...</ref>``, as footnotes."""
    notes: dict[str, str] = {}

    def as_mark(match: re.Match[str]) -> str:
        name = f"ref-{match['name'] or len(notes) + 1}".replace(" ", "-")
        if match["note"]:
            notes[name] = match["note"].strip()
        return f"[^{name}]"

    marked = _WIKI_NOTE.sub(as_mark, text)
    return marked + "".join(f"\n\n[^{name}]: {note}" for name, note in notes.items())
