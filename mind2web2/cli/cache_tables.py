"""The table at the end of a caching run: what is cached, what looks wrong, what could not be had."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from rich.console import Console
from rich.table import Table

from mind2web2.capture.record import CaptureRecord
from mind2web2.crawl_plan import CitedPage, TaskPages

# What a person at a browser of their own gets past.
_WALLS = {"challenge", "login_wall", "consent_wall"}


def print_cached(console: Console, tasks: Sequence[TaskPages], command: Callable[..., str]) -> None:
    """Print how each task's cited pages are stored, what is wrong with which, and what to do about it.

    Args:
        command: gives this run's command with more words.
    """
    console.print(_counts_table(tasks))
    for title, urls_by_reason in (("Suspect", _suspects(tasks)), ("Failed", _failures(tasks))):
        for reason, urls in sorted(urls_by_reason.items(), key=lambda item: -len(item[1])):
            _line(console, f"{title}: {reason}")
            for url, task_ids in urls.items():
                _line(console, f"  {url} ({', '.join(task_ids)})")
    for advice in _advice(command, [page for task in tasks for page in task.pages]):
        _line(console, advice)


def _counts_table(tasks: Sequence[TaskPages]) -> Table:
    has_suspects = any(page.is_suspect for task in tasks for page in task.pages)
    caption = "suspect ones are counted among pages and PDFs too" if has_suspects else None
    table = Table(title="Cited pages", caption=caption)
    table.add_column("task", overflow="fold")
    for name in ("cited", "pages", "PDFs", "suspect", "failed", "not tried"):
        table.add_column(name, justify="right")
    for task in tasks:
        table.add_row(task.task_id, *map(str, _counts(task.pages)), end_section=task is tasks[-1])
    if len(tasks) > 1:
        table.add_row(
            "all", *(str(sum(column)) for column in zip(*(_counts(t.pages) for t in tasks), strict=True))
        )
    return table


def _counts(pages: Sequence[CitedPage]) -> tuple[int, ...]:
    failed = sum(page.failure is not None for page in pages)
    stored = [page for page in pages if page.kind is not None]
    pdfs = sum(page.kind == "pdf" for page in stored)
    suspect = sum(page.is_suspect for page in stored)
    return len(pages), len(stored) - pdfs, pdfs, suspect, failed, len(pages) - len(stored) - failed


Urls = dict[str, list[str]]


def _suspects(tasks: Iterable[TaskPages]) -> Mapping[str, Urls]:
    return _by_reason(
        (_in_words(page.record), page.url, task.task_id)
        for task in tasks
        for page in task.pages
        if page.is_suspect and page.record is not None
    )


def _in_words(record: CaptureRecord) -> str:
    # All of a page's troubles together, so that it is listed once.
    return "; ".join(f"{trouble.kind.replace('_', ' ')}: {trouble.detail}" for trouble in record.troubles)


def _failures(tasks: Iterable[TaskPages]) -> Mapping[str, Urls]:
    return _by_reason(
        (page.failure, page.url, task.task_id)
        for task in tasks
        for page in task.pages
        if page.failure is not None
    )


def _by_reason(found: Iterable[tuple[str, str, str]]) -> Mapping[str, Urls]:
    grouped: dict[str, Urls] = {}
    for reason, url, task_id in found:
        task_ids = grouped.setdefault(" ".join(reason.split()), {}).setdefault(url, [])
        if task_id not in task_ids:
            task_ids.append(task_id)
    return grouped


def _advice(command: Callable[..., str], pages: Sequence[CitedPage]) -> Iterator[str]:
    own_browser = (
        "--cdp_url http://127.0.0.1:9222 (your own Chrome, started with --remote-debugging-port=9222)"
    )
    kinds_suspect = _trouble_kinds(page for page in pages if page.is_suspect)
    kinds_failed = _trouble_kinds(page for page in pages if page.failure is not None)
    if kinds_suspect:
        yield f"Next, to try pages that look wrong again: {command('--only', 'suspect')}"
    if any(page.failure is not None for page in pages):
        yield f"Next, to try what failed again: {command('--only', 'failed')}"
    if _WALLS & (kinds_suspect | kinds_failed) and "--cdp_url" not in command():
        yield f"Past logins and captchas: add {own_browser}."
    if "refused_address" in kinds_failed:
        yield "Pages on this machine or its network: add --allow_private_network where you trust the answers."


def _trouble_kinds(pages: Iterable[CitedPage]) -> set[str]:
    return {trouble.kind for page in pages if page.record is not None for trouble in page.record.troubles}


def _line(console: Console, text: str) -> None:
    console.print(text, soft_wrap=True)
