"""A caching run: read the answers, capture the cited pages, show progress, print a table."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

from rich.console import Console
from rich.table import Table

from mind2web2.capture.browser_manager import BatchBrowserManager
from mind2web2.capture.models import CaptureSettings
from mind2web2.cli.console import CrawlDisplay, counted, line, plain_console, warnings_on
from mind2web2.cli.event_loop import run_to_exit
from mind2web2.cli.options import RAY, network_of, storage_state_of
from mind2web2.cli.settings_file import judge_server, names_a_judge
from mind2web2.cli.suggestions import caching_command
from mind2web2.errors import AnswerError, UsageError
from mind2web2.llm_client import LLMClient
from mind2web2.llm_client.chat import ChatReply, Usage
from mind2web2.llm_client.prices import total_price_usd
from mind2web2.llm_client.settings import DEFAULT_JUDGE_MODEL
from mind2web2.pages.citations import FOLDER_NAME, AskForUrls, LinkJudge, judged_urls
from mind2web2.pages.crawl import (
    DEFAULT_ARCHIVE_URL,
    AgentCache,
    Archive,
    CitedPage,
    CrawlProgress,
    PageCapturer,
    TaskPages,
    crawl,
    find_citations,
)
from mind2web2.runs.answers import AnswerFile, read_answer
from mind2web2.scripts.inputs import answer_moment
from mind2web2.utils.path_config import PathConfig
from mind2web2.utils.text import dollars

# With --engine ray, pages wait at the nodes: enough for so many nodes.
_NODES = 16
# Pages that a person can open in a browser of their own.
_WALLS = {"challenge", "login_wall", "consent_wall"}


def print_cached(console: Console, tasks: Sequence[TaskPages], command: Callable[..., str]) -> None:
    """Print how each task's cited pages are stored, which have problems, and how to solve them."""
    console.print(_counts_table(tasks))
    reasons: dict[str, Callable[[CitedPage], str | None]]
    reasons = {"Archived": _copy_text, "Suspect": _trouble_text, "Failed": lambda page: page.failure}
    for title, reason_of in reasons.items():
        by_reason: dict[str, dict[str, dict[str, None]]] = {}
        for task in tasks:
            for page in task.pages:
                if reason := reason_of(page):
                    urls = by_reason.setdefault(" ".join(reason.split()), {})
                    urls.setdefault(page.url, {})[task.task_id] = None
        for reason, urls in sorted(by_reason.items(), key=lambda item: -len(item[1])):
            line(console, f"{title}: {reason}")
            for url, task_ids in urls.items():
                line(console, f"  {url} ({', '.join(task_ids)})")
    for advice in _advice(command, [page for task in tasks for page in task.pages]):
        line(console, advice)


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


def _copy_text(page: CitedPage) -> str | None:
    record = page.record
    if page.kind is None or record is None or record.archived_at is None:
        return None
    return f"copy of {record.archived_at[:10]}"


def _trouble_text(page: CitedPage) -> str | None:
    if not page.is_suspect or page.record is None:
        return None
    # All of a page's troubles together, so that it is listed once.
    return "; ".join(f"{each.kind.replace('_', ' ')}: {each.detail}" for each in page.record.troubles)


def _advice(command: Callable[..., str], pages: Sequence[CitedPage]) -> Iterator[str]:
    own_browser = (
        "--cdp_url http://127.0.0.1:9222 (your own Chrome, started with --remote-debugging-port=9222)"
    )
    kinds_suspect = _trouble_kinds(page for page in pages if page.is_suspect)
    kinds_failed = _trouble_kinds(page for page in pages if page.failure is not None)
    if kinds_suspect:
        yield f"Next, to try pages that look wrong again: {command('--only', 'suspect')}"
    if any(page.failure is not None for page in pages):
        yield f"Next, to try failed pages again: {command('--only', 'failed')}"
    if (kinds_suspect or kinds_failed) and "--archive" not in command():
        yield f"Next, to look for copies in the Internet Archive: {command('--archive')}"
    if _WALLS & (kinds_suspect | kinds_failed) and "--cdp_url" not in command():
        yield f"Past logins and captchas: add {own_browser}."
    if "refused_address" in kinds_failed:
        yield "Pages on this machine or its network: add --allow_private_network where you trust the answers."


def _trouble_kinds(pages: Iterable[CitedPage]) -> set[str]:
    return {trouble.kind for page in pages if page.record is not None for trouble in page.record.troubles}


log = logging.getLogger(__name__)

Selected = Mapping[str, Mapping[str, Sequence[AnswerFile]]]


@dataclass
class _Run:
    options: argparse.Namespace
    paths: PathConfig
    console: Console
    progress: CrawlProgress = field(default_factory=CrawlProgress)
    unread: list[str] = field(default_factory=list)
    replies: list[ChatReply] = field(default_factory=list)

    def report_stop(self) -> None:
        """Print how far the run has come."""
        done, total = len(self.progress.outcomes), self.progress.pages_total
        line(
            self.console,
            f"Stopped. {done} of {total} pages are done and kept: the same command continues from here.",
        )


def cache_agents(options: argparse.Namespace, paths: PathConfig, selected: Selected) -> int:
    """Cache the pages that the selected answers (by agent and task) cite, and return the exit status."""
    run = _Run(options, paths, plain_console(outlives_reader=True))
    return run_to_exit(_cache_agents(run, selected), run.report_stop)


async def _cache_agents(run: _Run, selected: Selected) -> int:
    tasks: list[TaskPages] = []
    with warnings_on(run.console):
        async with _asking(run) as ask:
            for agent_name, answers in selected.items():
                run.progress = CrawlProgress()
                tasks += await _cache_agent(run, agent_name, answers, ask)
    is_complete = all(page.kind is not None for task in tasks for page in task.pages)
    return 0 if is_complete and not run.unread else 1


async def _cache_agent(
    run: _Run, agent_name: str, answers: Mapping[str, Sequence[AnswerFile]], ask: AskForUrls | None
) -> list[TaskPages]:
    options = run.options
    cache = AgentCache(run.paths.cache_root / agent_name)
    link_judge = None
    if not options.no_llm:
        link_judge = LinkJudge(cache.folder / FOLDER_NAME, _model(options), ask)
    archive = _archive(options, answers)
    async with CrawlDisplay(run.console, run.progress):
        texts, unread = await asyncio.to_thread(answer_texts, answers)
        run.unread += unread
        citations = await find_citations(texts, link_judge, run.progress)
        tasks = await crawl(
            citations,
            cache,
            lambda: _capturer(options),
            run.progress,
            choice=options.only or ("doubtful" if options.archive else "missing"),
            archive=archive,
            pages_at_once=options.max_concurrent_pages * (_NODES if options.engine == RAY else 1),
        )
    print_cached(run.console, tasks, partial(caching_command, agent_name, options))
    if unread:
        line(run.console, f"Answers that could not be read: {len(unread)} ({', '.join(unread)})")
    if link_judge is not None:
        _print_asking(run, link_judge.answers_not_judged)
    return tasks


def _capturer(options: argparse.Namespace) -> AbstractAsyncContextManager[PageCapturer]:
    settings = _capture_settings(options)
    if options.engine == RAY:
        from mind2web2.cluster.crawl import BrowserSetup, ray_capturer

        setup = BrowserSetup(settings, options.max_concurrent_pages, options.max_retries)
        return ray_capturer(options.ray_address, setup)
    return BatchBrowserManager(
        options.headless, options.max_concurrent_pages, options.max_retries, settings=settings
    )


def _archive(options: argparse.Namespace, answers: Mapping[str, Sequence[AnswerFile]]) -> Archive | None:
    if not options.archive:
        return None
    moments = {
        task_id: {file.name: answer_moment(file.path, file.created) for file in files}
        for task_id, files in answers.items()
    }
    return Archive(options.archive_url or DEFAULT_ARCHIVE_URL, moments)


def _model(options: argparse.Namespace) -> str | None:
    return (options.judge_model or DEFAULT_JUDGE_MODEL) if names_a_judge(options) else None


def _print_asking(run: _Run, not_judged: int) -> None:
    model, replies = _model(run.options), run.replies
    if replies:
        tokens = sum((reply.usage for reply in replies), Usage())
        cost_usd = total_price_usd((reply.usage for reply in replies), model or "")
        cost = "price unknown" if cost_usd is None else dollars(cost_usd)
        line(
            run.console,
            f"Asked {model} for links written as plain words in {counted(len(replies), 'answer')}: "
            f"{counted(sum(reply.attempts for reply in replies), 'request')}, "
            f"{tokens.input_tokens:,} tokens in, {tokens.output_tokens:,} out, {cost}.",
        )
    run.replies.clear()
    if not_judged:
        reason = "no model was asked" if model is None else f"{model} could not be asked"
        line(
            run.console,
            f"Links written as plain words were not looked for in {counted(not_judged, 'answer')}, "
            f"as {reason}. Nothing is missing if your answers use normal links.",
        )


def answer_texts(answers: Mapping[str, Sequence[AnswerFile]]) -> tuple[dict[str, dict[str, str]], list[str]]:
    """Return the answers' texts by task and file name, and the names of those that cannot be read."""
    texts: dict[str, dict[str, str]] = {}
    unread: list[str] = []
    for task_id, files in answers.items():
        texts[task_id] = {}
        for file in files:
            try:
                texts[task_id][file.name] = read_answer(file.path)
            except AnswerError as error:
                log.warning("left out: %s", error)
                unread.append(f"{task_id}/{file.name}")
    return texts, unread


def _capture_settings(options: argparse.Namespace) -> CaptureSettings:
    return CaptureSettings(
        headless=options.headless,
        cdp_url=options.cdp_url,
        storage_state=storage_state_of(options),
        network=network_of(options),
        page_timeout_s=options.overall_timeout,
    )


@asynccontextmanager
async def _asking(run: _Run) -> AsyncIterator[AskForUrls | None]:
    """Yield the function that asks the model; ``None`` where no model is named or its key is missing."""
    options, model = run.options, _model(run.options)
    if options.no_llm or model is None:
        yield None
        return
    try:
        client = LLMClient(options.llm_provider, is_async=True, base_url=judge_server(options))
    except UsageError as error:
        log.warning("links written as plain words are left out: %s", error)
        yield None
        return

    extra = json.loads(options.judge_extra_body or "{}")

    async def ask(answer: str) -> list[str]:
        urls, reply = await judged_urls(answer, client, model, extra=extra)
        run.replies.append(reply)
        return urls

    async with client:
        yield ask
