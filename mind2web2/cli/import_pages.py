"""``mind2web2 import pages``: store the pages that an agent saw, instead of capturing them."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from mind2web2.cli.cache import answer_texts
from mind2web2.cli.console import PlainConsole
from mind2web2.cli.options import settings_of
from mind2web2.errors import UsageError
from mind2web2.pages.cited_pages import AgentCache
from mind2web2.pages.crawl import CrawlProgress, find_citations
from mind2web2.pages.importing import ImportOutcome, import_file
from mind2web2.pages.link_judge import FOLDER_NAME, LinkJudge
from mind2web2.results.answers import select_answers
from mind2web2.runs.settings import RunSettings
from mind2web2.utils.text import counted


def run(options: argparse.Namespace) -> int:
    """Store the pages of a file and return the exit status."""
    if not options.file.exists():
        raise UsageError(f"there is no file {options.file}")
    outcome = asyncio.run(_import_pages(settings_of(options), options.agent, options.file))
    if outcome.faults:
        console = PlainConsole(sys.stderr)
        console.print_lines(outcome.faults, f"{options.file}: ")
        errors = counted(len(outcome.faults), "error")
        console.print_line(f"Nothing was imported: {errors} in {options.file}.")
        return 2
    console = PlainConsole()
    stored = sum(map(len, outcome.stored.values()))
    for task_id, urls in outcome.stored.items():
        console.print_line(f"{task_id}: {counted(len(urls), 'page')} imported")
    console.print_lines(outcome.kept, "not stored, because the stored page looks better: ")
    uncited = "not stored, because no answer cites it (--task_id ID stores it for a task): "
    console.print_lines(outcome.uncited, uncited)
    console.print_line(f"Imported {counted(stored, 'page')} from {options.file}.")
    return 0 if stored else 1


async def _import_pages(settings: RunSettings, agent: str, file: Path) -> ImportOutcome:
    paths = settings.paths
    cache = AgentCache(paths.cache_root / agent)
    task_ids = settings.task_ids
    texts, _ = answer_texts(select_answers(paths, agent, task_ids))
    citations = await find_citations(
        texts, LinkJudge(cache.folder / FOLDER_NAME, None, None), CrawlProgress()
    )
    outcome = await asyncio.to_thread(import_file, file, cache, citations, task_ids=task_ids)
    for task in citations:
        if task.task_id in outcome.stored:
            cache.list_citations(task)
    return outcome
