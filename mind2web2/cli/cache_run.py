"""A caching run as a command carries it out: answers read, browser opened, progress shown, table printed."""

from __future__ import annotations

import argparse
import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

from rich.console import Console

from mind2web2.agent_cache import AgentCache
from mind2web2.capture.settings import CaptureSettings, NetworkSettings
from mind2web2.cli.cache_tables import print_cached
from mind2web2.cli.console import plain_console, warnings_on
from mind2web2.cli.progress import CrawlDisplay
from mind2web2.cli.run_loop import INTERRUPTED, RunLoop, end_process
from mind2web2.cli.settings_file import names_a_judge
from mind2web2.cli.suggestions import caching_command
from mind2web2.crawl import CrawlProgress, crawl, find_citations
from mind2web2.crawl_plan import TaskPages
from mind2web2.discovery import judged_urls
from mind2web2.errors import AnswerError, UsageError
from mind2web2.eval_runner import DEFAULT_JUDGE_MODEL
from mind2web2.link_judge import FOLDER_NAME, AskForUrls, LinkJudge
from mind2web2.llm_client import LLMClient
from mind2web2.llm_client.chat import ChatReply, TokenUsage
from mind2web2.llm_client.prices import total_price_usd
from mind2web2.selection import AnswerFile, read_answer
from mind2web2.utils.dollars import dollars
from mind2web2.utils.page_info_retrieval import BatchBrowserManager
from mind2web2.utils.path_config import PathConfig

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

    def tell_stopped(self) -> None:
        """Say how far the run has come."""
        done, total = len(self.progress.outcomes), self.progress.pages_total
        self.console.print(
            f"Stopped. {done} of {total} pages are done and kept: the same command goes on from here.",
            soft_wrap=True,
        )


def cache_agents(options: argparse.Namespace, paths: PathConfig, selected: Selected) -> int:
    """Cache the pages that the selected answers (by agent and task) cite, and return the exit status."""
    run = _Run(options, paths, plain_console(outlives_reader=True))
    loop = RunLoop(run.tell_stopped)
    try:
        tasks = loop.run(_cache_agents(run, selected))
        is_complete = all(page.kind is not None for task in tasks for page in task.pages)
        exit_status = 0 if is_complete and not run.unread else 1
    except KeyboardInterrupt:
        exit_status = INTERRUPTED
    if loop.has_leftovers:
        end_process(exit_status)
    return exit_status


async def _cache_agents(run: _Run, selected: Selected) -> list[TaskPages]:
    tasks: list[TaskPages] = []
    with warnings_on(run.console):
        async with _asking(run) as ask:
            for agent_name, answers in selected.items():
                run.progress = CrawlProgress()
                tasks += await _cache_agent(run, agent_name, answers, ask)
    return tasks


async def _cache_agent(
    run: _Run, agent_name: str, answers: Mapping[str, Sequence[AnswerFile]], ask: AskForUrls | None
) -> list[TaskPages]:
    options = run.options
    cache = AgentCache(run.paths.cache_root / agent_name)
    link_judge = None
    if not options.no_llm:
        link_judge = LinkJudge(cache.folder / FOLDER_NAME, _model(options), ask)
    async with CrawlDisplay(run.console, run.progress):
        texts, unread = await asyncio.to_thread(_texts, answers)
        run.unread += unread
        citations = await find_citations(texts, link_judge, run.progress)
        tasks = await crawl(
            citations,
            cache,
            lambda: BatchBrowserManager(
                options.headless,
                options.max_concurrent_pages,
                options.max_retries,
                settings=_capture_settings(options),
            ),
            run.progress,
            choice=options.only or "missing",
            pages_at_once=options.max_concurrent_pages,
        )
    print_cached(run.console, tasks, partial(caching_command, agent_name, options))
    if unread:
        run.console.print(
            f"Answers that could not be read: {len(unread)} ({', '.join(unread)})", soft_wrap=True
        )
    if link_judge is not None:
        _print_asking(run, link_judge.answers_not_judged)
    return tasks


def _model(options: argparse.Namespace) -> str | None:
    return (options.judge_model or DEFAULT_JUDGE_MODEL) if names_a_judge(options) else None


def _print_asking(run: _Run, not_judged: int) -> None:
    model, replies = _model(run.options), run.replies
    if replies:
        tokens = sum((reply.usage for reply in replies), TokenUsage())
        cost_usd = total_price_usd((reply.usage for reply in replies), model or "")
        cost = "price unknown" if cost_usd is None else dollars(cost_usd)
        run.console.print(
            f"Asked {model} for links written as plain words in {_counted(len(replies), 'answer')}: "
            f"{_counted(sum(reply.attempts for reply in replies), 'request')}, "
            f"{tokens.input_tokens:,} tokens in, {tokens.output_tokens:,} out, {cost}.",
            soft_wrap=True,
        )
    run.replies.clear()
    if not_judged:
        reason = "no model was asked" if model is None else f"{model} could not be asked"
        run.console.print(
            f"Links written as plain words were not looked for in {_counted(not_judged, 'answer')}, "
            f"as {reason}. Nothing is missing if your answers use normal links.",
            soft_wrap=True,
        )


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _texts(answers: Mapping[str, Sequence[AnswerFile]]) -> tuple[dict[str, dict[str, str]], list[str]]:
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
        network=NetworkSettings(allow_private_network=options.allow_private_network),
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
        client = LLMClient(options.llm_provider, is_async=True, base_url=options.judge_base_url)
    except UsageError as error:
        log.warning("links written as plain words are left out: %s", error)
        yield None
        return

    async def ask(answer: str) -> list[str]:
        urls, reply = await judged_urls(answer, client, model)
        run.replies.append(reply)
        return urls

    async with client:
        yield ask
