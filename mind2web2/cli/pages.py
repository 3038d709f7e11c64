"""``mind2web2 pages``: store pages from files, and write stored pages to a file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mind2web2.cli.options import Subcommands, add_folder_options, add_task_option, paths_of, web_address
from mind2web2.errors import UsageError

if TYPE_CHECKING:
    from mind2web2.pages.importing import ImportOutcome

DESCRIPTION = """\
Store the pages that an agent saw, instead of capturing them, and hand stored pages on.

  mind2web2 pages import my_agent pages.jsonl        one page a line: url, text or html, screenshot, ...
  mind2web2 pages import my_agent crawl.warc.gz      pages of a crawler
  mind2web2 pages import my_agent page.mhtml         a page saved by Chrome
  mind2web2 pages import my_agent paper.pdf --url https://example.org/paper.pdf
  mind2web2 pages import my_agent old_cache/my_agent  a folder in the layout of cache/
  mind2web2 pages export my_agent --warc my_agent.warc.gz

Nothing is fetched from the network. A page goes to the tasks whose answers cite it. Exit status of import: 0
something was stored, 1 nothing was, 2 the file has errors, which are listed, and nothing was stored.
"""


def add_command(commands: Subcommands) -> None:
    """Add ``pages`` to ``mind2web2``."""
    parser = commands.add_parser("pages", help="import or export stored pages", description=DESCRIPTION)
    actions = parser.add_subparsers(title="actions", required=True, metavar="ACTION")
    about = "store the pages of a file, or of a cache folder"
    importing = actions.add_parser("import", help=about, description=about)
    importing.add_argument("agent", metavar="AGENT", help="the agent, a folder under answers/")
    importing.add_argument(
        "file", metavar="FILE", type=Path, help=".jsonl, .warc, .warc.gz, .mhtml, .pdf, or a cache folder"
    )
    add_task_option(importing, default="those whose answers cite the page")
    importing.add_argument(
        "--url", metavar="URL", type=web_address, help="of the page in a .pdf or .mhtml file"
    )
    add_folder_options(importing, "answer_folder", "cache_root")
    importing.set_defaults(run=run_import)
    about = "write the agent's stored pages to a WARC file"
    exporting = actions.add_parser("export", help=about, description=about)
    exporting.add_argument("agent", metavar="AGENT", help="the agent, a folder under cache/")
    exporting.add_argument(
        "--warc", metavar="FILE", type=Path, required=True, help="compressed if it ends in .gz"
    )
    add_task_option(exporting, default="all that have pages")
    add_folder_options(exporting, "cache_root")
    exporting.set_defaults(run=run_export)


def run_import(options: argparse.Namespace) -> int:
    """Store the pages of a file and return the exit status."""
    import asyncio

    from mind2web2.cli.console import counted

    if not options.file.exists():
        raise UsageError(f"there is no file {options.file}")
    outcome = asyncio.run(_imported(options))
    if outcome.faults:
        for fault in outcome.faults:
            print(f"{options.file}: {fault}", file=sys.stderr)  # noqa: T201
        errors = counted(len(outcome.faults), "error")
        print(f"Nothing was imported: {errors} in {options.file}.", file=sys.stderr)  # noqa: T201
        return 2
    stored = sum(map(len, outcome.stored.values()))
    for task_id, urls in outcome.stored.items():
        print(f"{task_id}: {counted(len(urls), 'page')} imported")  # noqa: T201
    for url in outcome.kept:
        print(f"kept, the stored page looks better: {url}")  # noqa: T201
    for url in outcome.uncited:
        print(f"left out, no answer cites it (--task_id ID stores it in a task): {url}")  # noqa: T201
    print(f"Imported {counted(stored, 'page')} from {options.file}.")  # noqa: T201
    return 0 if stored else 1


async def _imported(options: argparse.Namespace) -> ImportOutcome:
    import asyncio

    from mind2web2.capture.browser_manager import BatchBrowserManager
    from mind2web2.cli.cache_run import answer_texts
    from mind2web2.pages.citations import FOLDER_NAME, LinkJudge
    from mind2web2.pages.crawl import AgentCache, CrawlProgress, find_citations
    from mind2web2.pages.importing import import_file, import_folder
    from mind2web2.runs.answers import select_answers

    paths = paths_of(options)
    cache = AgentCache(paths.cache_root / options.agent)
    task_ids = options.task_ids or ()
    texts, _ = answer_texts(select_answers(paths, options.agent, task_ids))
    citations = await find_citations(
        texts, LinkJudge(cache.folder / FOLDER_NAME, None, None), CrawlProgress()
    )
    if options.file.is_dir():
        outcome = await asyncio.to_thread(import_folder, options.file, cache, task_ids)
    else:
        outcome = await import_file(
            options.file, cache, citations, BatchBrowserManager, task_ids=task_ids, url=options.url
        )
    for task in citations:
        if task.task_id in outcome.stored:
            cache.list_citations(task)
    return outcome


def run_export(options: argparse.Namespace) -> int:
    """Write stored pages to a file and return the exit status."""
    from mind2web2.cli.console import counted
    from mind2web2.pages.cache_files import file_names_in
    from mind2web2.pages.crawl import AgentCache
    from mind2web2.pages.warc import export_warc

    cache = AgentCache(paths_of(options).cache_root / options.agent)
    names = options.task_ids or sorted(file_names_in(cache.folder))
    caches = [cache.of(name) for name in names if (cache.folder / name / "index.json").exists()]
    if not caches:
        raise UsageError(f"no stored pages under {cache.folder}: run mind2web2 cache {options.agent} first")
    options.warc.parent.mkdir(parents=True, exist_ok=True)
    print(f"Wrote {counted(export_warc(caches, options.warc), 'page')} to {options.warc}.")  # noqa: T201
    return 0
