"""``mind2web2 cache``: store the cited pages by capturing them."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial

from mind2web2.capture.models import PageCapturer
from mind2web2.cli.console import PlainConsole
from mind2web2.cli.crawl_display import CrawlDisplay
from mind2web2.cli.event_loop import run_to_exit
from mind2web2.cli.options import given_settings, load_function, settings_of
from mind2web2.errors import AnswerError, UsageError
from mind2web2.llm_client import LLMClient
from mind2web2.llm_client.chat import ChatReply, Usage
from mind2web2.llm_client.prices import total_price_usd
from mind2web2.llm_client.settings import public_address
from mind2web2.pages.archive import DEFAULT_ARCHIVE_URL, Archive
from mind2web2.pages.cited_pages import AgentCache, Choice, CitedPage, TaskPages
from mind2web2.pages.crawl import CrawlProgress, crawl, find_citations
from mind2web2.pages.link_judge import FOLDER_NAME, AskForUrls, LinkJudge, judged_urls
from mind2web2.results.answers import (
    AnswerFile,
    agent_names,
    read_answer,
    select_answers,
    without_empty,
)
from mind2web2.runs.capturing import BrowserSetup, capture_settings
from mind2web2.runs.settings import PLAIN, RunSettings
from mind2web2.utils.moments import answer_moment
from mind2web2.utils.path_config import PathConfig
from mind2web2.utils.program import command_line
from mind2web2.utils.text import counted, dollars

log = logging.getLogger(__name__)

# Pages that a person can open in a browser of their own.
_WALLS = {"challenge", "login_wall", "consent_wall"}


@dataclass(frozen=True)
class _Caching:
    """The storage settings of a command: those that it shares with runs, and its own.

    Args:
        model: the model that is asked for links, if the command line names a judge.
    """

    settings: RunSettings
    model: str | None
    choice: Choice
    is_archive_asked: bool
    archive_url: str | None
    pages_at_once: int
    retries: int
    page_timeout_s: float

    def suggested(self, agent_name: str, *more: str) -> str:
        """Return the same command with more words."""
        given = self.settings.options("answer_folder", "cache_root", "allow_private_network")
        words = [*more, *given]
        if self.is_archive_asked:
            words.append("--archive")
        if self.settings.cdp_url is not None:
            words += ["--cdp_url", public_address(self.settings.cdp_url)]
        return command_line("cache", agent_name, *words)


def run(options: argparse.Namespace) -> int:
    """Cache the cited pages and return the exit status."""
    typed = given_settings(options)
    _check(typed, options.archive, options.archive_url)
    agent = options.agent.rstrip("/") if options.agent else None
    named = settings_of(options, is_announced=True)
    caching = _Caching(
        replace(named, agent_name=agent),
        model=named.model if typed.names_a_judge else None,
        choice=options.only or ("doubtful" if options.archive else "missing"),
        is_archive_asked=options.archive,
        archive_url=options.archive_url,
        pages_at_once=options.max_concurrent_pages,
        retries=options.max_retries,
        page_timeout_s=options.overall_timeout,
    )
    paths = caching.settings.paths
    agents = [agent] if agent else agent_names(paths)
    selected = {name: select_answers(paths, name, named.task_ids) for name in agents}
    return _cache_pages(caching, paths, selected)


def _check(settings: RunSettings, archive: bool, archive_url: str | None) -> None:
    if archive_url is not None and not archive:
        raise UsageError("--archive_url goes with --archive")
    if settings.engine != PLAIN and (settings.cdp_url or settings.headed):
        raise UsageError(f"a window belongs to one machine: leave --engine {settings.engine} out")
    settings.check_capture()


def print_cached(
    console: PlainConsole, tasks: Sequence[TaskPages], command: Callable[..., str]
) -> None:
    """Print how each task's cited pages are stored, which have problems, and how to solve them."""
    _print_counts(console, tasks)
    reasons: dict[str, Callable[[CitedPage], str | None]]
    reasons = {
        "Archived": _copy_text,
        "Suspect": _trouble_text,
        "Failed": lambda page: page.failure,
    }
    for title, reason_of in reasons.items():
        by_reason: dict[str, dict[str, dict[str, None]]] = {}
        for task in tasks:
            for page in task.pages:
                if reason := reason_of(page):
                    urls = by_reason.setdefault(" ".join(reason.split()), {})
                    urls.setdefault(page.url, {})[task.task_id] = None
        for reason, urls in sorted(by_reason.items(), key=lambda item: -len(item[1])):
            console.print_line(f"{title}: {reason}")
            for url, task_ids in urls.items():
                console.print_line(f"  {url} ({', '.join(task_ids)})")
    console.print_lines(_advice(command, [page for task in tasks for page in task.pages]))


def _print_counts(console: PlainConsole, tasks: Sequence[TaskPages]) -> None:
    counts = {task.task_id: _counts(task.pages) for task in tasks}
    rows = [(task_id, *map(str, numbers)) for task_id, numbers in counts.items()]
    if len(tasks) > 1:
        rows.append(("all", *(str(sum(column)) for column in zip(*counts.values(), strict=True))))
    console.print_table(
        "Cited pages",
        ("task", "cited", "pages", "PDFs", "suspect", "failed", "not tried"),
        rows,
        caption="suspect pages are also counted as pages or PDFs",
    )


def _counts(pages: Sequence[CitedPage]) -> tuple[int, ...]:
    failed = sum(page.failure is not None for page in pages)
    stored = [page for page in pages if page.kind is not None]
    pdfs = sum(page.kind == "pdf" for page in stored)
    suspect = sum(page.is_suspect for page in stored)
    return (
        len(pages),
        len(stored) - pdfs,
        pdfs,
        suspect,
        failed,
        len(pages) - len(stored) - failed,
    )


def _copy_text(page: CitedPage) -> str | None:
    record = page.record
    if page.kind is None or record is None or record.archived_at is None:
        return None
    return f"copy of {record.archived_at[:10]}"


def _trouble_text(page: CitedPage) -> str | None:
    if not page.is_suspect or page.record is None:
        return None
    # All of a page's troubles together, so that it is listed once.
    return "; ".join(
        f"{each.kind.replace('_', ' ')}: {each.detail}" for each in page.record.troubles
    )


def _advice(command: Callable[..., str], pages: Sequence[CitedPage]) -> Iterator[str]:
    own_browser = (
        "--cdp_url http://127.0.0.1:9222"
        " (your own Chrome, started with --remote-debugging-port=9222)"
    )
    suspect = [page for page in pages if page.is_suspect]
    failed = [page for page in pages if page.failure is not None]
    refused = [page for page in failed if _is_refused_as_private(page)]
    if suspect:
        yield f"Next, to try pages that look wrong again: {command('--only', 'suspect')}"
    if len(failed) > len(refused):
        yield f"Next, to try failed pages again: {command('--only', 'failed')}"
    if len(suspect) + len(failed) > len(refused) and "--archive" not in command():
        yield f"Next, to look for copies in the Internet Archive: {command('--archive')}"
    if _WALLS & _trouble_kinds([*suspect, *failed]) and "--cdp_url" not in command():
        yield f"To get past logins and captchas, add {own_browser}."
    if refused:
        again = command("--only", "failed", "--allow_private_network")
        yield f"If you trust the answers, to capture pages on this machine or its network: {again}"


def _is_refused_as_private(page: CitedPage) -> bool:
    return page.record is not None and page.record.is_refused_as_private


def _trouble_kinds(pages: Iterable[CitedPage]) -> set[str]:
    return {
        trouble.kind
        for page in pages
        if page.record is not None
        for trouble in page.record.troubles
    }


@dataclass
class _Run:
    caching: _Caching
    paths: PathConfig
    console: PlainConsole
    progress: CrawlProgress
    unread: list[str] = field(default_factory=list)
    replies: list[ChatReply] = field(default_factory=list)

    def report_stop(self) -> None:
        """Print how far the run has come."""
        done, total = len(self.progress.outcomes), self.progress.pages_total
        begins_again = "captures all pages again; without --overwrite, it captures missing ones"
        then = begins_again if self.caching.choice == "all" else "continues from here"
        self.console.print_line(
            f"Stopped. {done} of {counted(total, 'page')} done and kept. The same command {then}."
        )


def _cache_pages(
    caching: _Caching,
    paths: PathConfig,
    selected: Mapping[str, Mapping[str, Sequence[AnswerFile]]],
) -> int:
    """Cache the pages that the selected answers cite, and return the exit status.

    The answers are given by agent and task.
    """
    run = _Run(caching, paths, PlainConsole(outlives_reader=True), CrawlProgress())
    return run_to_exit(_cache_agents(run, selected), run.report_stop)


async def _cache_agents(
    run: _Run, selected: Mapping[str, Mapping[str, Sequence[AnswerFile]]]
) -> int:
    tasks: list[TaskPages] = []
    with run.console.show_warnings():
        async with _asking(run) as ask:
            for agent_name, answers in selected.items():
                run.progress = CrawlProgress()
                tasks += await _cache_agent(run, agent_name, answers, ask)
    is_complete = all(page.kind is not None for task in tasks for page in task.pages)
    return 0 if is_complete and not run.unread else 1


async def _cache_agent(
    run: _Run,
    agent_name: str,
    answers: Mapping[str, Sequence[AnswerFile]],
    ask: AskForUrls | None,
) -> list[TaskPages]:
    caching = run.caching
    cache = AgentCache(run.paths.cache_root / agent_name)
    link_judge = LinkJudge(cache.folder / FOLDER_NAME, caching.model, ask)
    archive = _archive(caching, answers)
    async with CrawlDisplay(run.console, run.progress):
        texts, unread = await asyncio.to_thread(answer_texts, answers)
        run.unread += unread
        citations = await find_citations(texts, link_judge, run.progress)
        tasks = await crawl(
            citations,
            cache,
            lambda: _capturer(caching),
            run.progress,
            choice=caching.choice,
            archive=archive,
            pages_at_once=caching.pages_at_once,
        )
    print_cached(run.console, tasks, partial(caching.suggested, agent_name))
    if unread:
        run.console.print_line(
            f"{counted(len(unread), 'answer')} could not be read: {', '.join(unread)}",
        )
    _print_asking(run, link_judge.answers_not_judged)
    return tasks


def _capturer(caching: _Caching) -> AbstractAsyncContextManager[PageCapturer]:
    settings = replace(capture_settings(caching.settings), page_timeout_s=caching.page_timeout_s)
    setup = BrowserSetup(settings, caching.pages_at_once, caching.retries)
    if caching.settings.engine != PLAIN:
        way = f"mind2web2_{caching.settings.engine}.engine:capturer"
        capturer: AbstractAsyncContextManager[PageCapturer] = load_function(way)(setup)
        return capturer
    return setup.browser()


def _archive(caching: _Caching, answers: Mapping[str, Sequence[AnswerFile]]) -> Archive | None:
    if not caching.is_archive_asked:
        return None
    moments = {
        task_id: {file.name: answer_moment(file.path, file.created) for file in files}
        for task_id, files in answers.items()
    }
    return Archive(caching.archive_url or DEFAULT_ARCHIVE_URL, moments)


def _print_asking(run: _Run, not_judged: int) -> None:
    model, replies = run.caching.model, run.replies
    if replies:
        tokens = sum((reply.usage for reply in replies), Usage())
        cost_usd = total_price_usd((reply.usage for reply in replies), model or "")
        run.console.print_line(
            f"Asked {model} for links written as plain words in {counted(len(replies), 'answer')}: "
            f"{counted(sum(reply.attempts for reply in replies), 'request')}, "
            f"{tokens.input_tokens:,} tokens in, {tokens.output_tokens:,} out, {dollars(cost_usd)}.",
        )
    run.replies.clear()
    if not_judged:
        reason = "name a model with --judge_model" if model is None else f"{model} did not reply"
        run.console.print_line(
            "Not looked for: links written as plain words, as in 'see example dot org', in "
            f"{counted(not_judged, 'answer')} ({reason}).",
        )


def answer_texts(
    answers: Mapping[str, Sequence[AnswerFile]],
) -> tuple[dict[str, dict[str, str]], list[str]]:
    """Return the answers' texts by task and file name, and the names of unreadable ones."""
    texts: dict[str, dict[str, str]] = {}
    unread: list[str] = []
    for task_id, files in answers.items():
        texts[task_id] = {}
        for file in without_empty(files)[0]:
            try:
                texts[task_id][file.name] = read_answer(file.path)
            except AnswerError as error:
                log.warning("left out: %s", error)
                unread.append(f"{task_id}/{file.name}")
    return texts, unread


@asynccontextmanager
async def _asking(run: _Run) -> AsyncIterator[AskForUrls | None]:
    """Yield the function that asks the model.

    ``None`` where no model is named or its key is missing.
    """
    settings, model = run.caching.settings, run.caching.model
    if model is None:
        yield None
        return
    try:
        client = LLMClient(settings.llm_provider, is_async=True, base_url=settings.judge_base_url)
    except UsageError as error:
        log.warning("links written as plain words are left out: %s", error)
        yield None
        return

    extra = json.loads(settings.judge_extra_body or "{}")

    async def ask(answer: str) -> list[str]:
        urls, reply = await judged_urls(answer, client, model, extra=extra)
        run.replies.append(reply)
        return urls

    async with client:
        yield ask
