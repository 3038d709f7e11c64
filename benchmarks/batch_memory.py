"""Measure the memory of questions that wait for a batch job.

Three hundred questions are on one large page, or each on a page of its own.

A body comes to a megabyte, and is written to the job's input. A question waits for its reply for up
to a day. It should hold only the conversation meanwhile, and questions share the pages.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import tracemalloc
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from measuring import title

from mind2web2.llm_client.transport import JsonBody
from mind2web2.plugins.batch.state import BatchFolder, Collector
from mind2web2.prompts import HashedText

QUESTIONS = 300
PAGE_BYTES = 1_000_000
ROOM_BYTES = 10**10


async def measured(page_count: int) -> tuple[float, float, float]:
    """Return MB of the pages, and MB above them while the questions go out, and while they wait."""
    # Let everything that is made once be made.
    with tempfile.TemporaryDirectory() as folder:
        await waiting(Path(folder), [page(0)], 1)
    tracemalloc.start()
    pages = [page(number) for number in range(page_count)]
    pages_bytes, _ = tracemalloc.get_traced_memory()
    with tempfile.TemporaryDirectory() as folder:
        held = await waiting(Path(folder), pages, QUESTIONS)
    held_bytes, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del held
    return (
        pages_bytes / 1e6,
        (most_bytes - pages_bytes) / 1e6,
        (held_bytes - pages_bytes) / 1e6,
    )


def page(number: int) -> HashedText:
    """Return a page's image, another for each number."""
    return HashedText(f"data:image/jpeg;base64,{number:06d}" + "A" * PAGE_BYTES).prepare()


async def waiting(folder: Path, pages: Sequence[HashedText], count: int) -> object:
    """Hand questions in, and return what each of them holds on to."""
    collector = Collector(BatchFolder(folder), "/v1/chat/completions", count + 1, ROOM_BYTES)
    bodies = [partial(body, pages[number % len(pages)], number) for number in range(count)]

    async def asked(make_body: partial[JsonBody]) -> object:
        question = await collector.identify("", make_body)
        await collector.add(question, make_body)
        return question, make_body

    held = await asyncio.gather(*(asked(make_body) for make_body in bodies))
    [job_input] = await collector.due(0.05, lambda: False)
    assert job_input.path.stat().st_size > count * PAGE_BYTES
    return held, collector


def body(image: HashedText, number: int) -> JsonBody:
    """Return the body of a request about a page."""
    parts = [
        {"type": "image_url", "image_url": {"url": image}},
        {"type": "text", "text": f"Is it {number}?"},
    ]
    return JsonBody({"model": "gpt-4o"}, [{"role": "user", "content": parts}])


def main() -> None:
    """Print what is held."""
    title(
        f"{QUESTIONS} questions in a batch job, pages of {PAGE_BYTES / 1e6:g} MB, {os.cpu_count()} "
        "cores"
    )
    for page_count in (1, QUESTIONS):
        pages_mb, most_mb, held_mb = asyncio.run(measured(page_count))
        bodies_mb = QUESTIONS * PAGE_BYTES / 1e6
        sys.stdout.write(
            f"  on {page_count:>3} pages: {pages_mb:6.1f} MB of pages, besides at most "
            f"{most_mb:5.1f} MB "
            f"while they go out, {held_mb:5.2f} MB while they wait ({held_mb / bodies_mb:.4f} of "
            "all)\n"
        )


if __name__ == "__main__":
    main()
