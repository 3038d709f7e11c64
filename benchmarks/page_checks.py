"""A claim with several source pages: what it takes, and the processor time of a request.

The pages are large and not prepared yet; the judge takes 200 ms and a capture one second. The claim
is supported by the last page at hand, by the last one to be captured, or by none. The processor's
time is that of this process, for requests through the real SDK to a server in another one.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import random
import sys
import tempfile
import time
from pathlib import Path

from measuring import show, title
from shared_pages import screenshot, text_of
from slow_judge import SlowJudge

from mind2web2 import CacheFileSys, Evaluator
from mind2web2.llm_client import LLMClient
from mind2web2.llm_client.chat import ChatReply, ChatRequest, Limit
from mind2web2.pages.prepared_page import PreparedPage
from mind2web2.prompts import HashedText
from mind2web2.verification.extractor import BinaryEvalResult
from mind2web2.verification.messages import verification_messages

LATENCY_S, CAPTURE_S = 0.2, 1.0
AT_HAND, UNCACHED = 4, 3
REQUESTS = 200


def address(name: str) -> str:
    """Return a page's address."""
    return f"https://www.ottermoss.example/{name}"


class LatentProvider:
    """A judge for whom one page supports any claim."""

    endpoint = "latent"

    def __init__(self, supporting: str) -> None:
        self._supporting = f"<<page address {{}}>>\n{address(supporting)}\n".partition("{}")[2]
        self.requests = 0

    async def chat(self, request: ChatRequest, limit: Limit) -> ChatReply:
        """Return a verdict after the latency."""
        self.requests += 1
        async with limit:
            await asyncio.sleep(LATENCY_S)
        text = "".join(part.get("text", "") for part in request.messages[-1]["content"])
        verdict = BinaryEvalResult(reasoning="r", result=self._supporting in text)
        return ChatReply(text=verdict.model_dump_json(), value=verdict)

    async def close(self) -> None:
        """Close nothing."""


class LatentCamera:
    """Captures any page after a second."""

    def __init__(self) -> None:
        self.captures = 0

    async def capture_page(
        self, url: str, _logger: logging.Logger
    ) -> tuple[str | None, str | None]:
        """Return no screenshot, and a text."""
        self.captures += 1
        await asyncio.sleep(CAPTURE_S)
        return None, f"page {url}"


async def check(supporting: str, folder: Path, picture: bytes) -> tuple[float, int, int]:
    """Verify one claim on all pages; return the seconds, the judge requests and the captures."""
    cache = CacheFileSys(folder)
    for number in range(AT_HAND):
        cache.put_web(address(f"at-hand-{number}"), text_of(200_000 + number), picture)
    provider, camera = LatentProvider(supporting), LatentCamera()
    evaluator = Evaluator()
    evaluator.initialize(
        "pages", client=provider, answer="a", global_cache=cache, browser_manager=camera
    )
    # as scripts list them: what is cached and what is not in any order
    urls = [address(f"uncached-{number}") for number in range(UNCACHED)]
    urls += [address(f"at-hand-{number}") for number in range(AT_HAND)]
    started = time.perf_counter()
    await evaluator.verify("claim", None, urls)
    return time.perf_counter() - started, provider.requests, camera.captures


def print_paces() -> None:
    """Measure and print what one claim takes."""
    picture = screenshot()
    for supporting in (f"at-hand-{AT_HAND - 1}", f"uncached-{UNCACHED - 1}", "none"):
        title(
            f"One claim on {AT_HAND} pages at hand and {UNCACHED} uncached ones, supported by "
            f"{supporting}"
        )
        with tempfile.TemporaryDirectory() as folder:
            took_s, requests, captures = asyncio.run(check(supporting, Path(folder), picture))
        show("seconds", took_s, remark=f"{requests} requests, {captures} captures")


def page() -> PreparedPage:
    """Return a page with a screenshot of 1 MB in four parts."""
    choose = random.Random(1)
    parts = (base64.b64encode(choose.randbytes(250_000)).decode() for _ in range(4))
    text = HashedText(text_of(100_000)).prepare()
    images = tuple(HashedText(f"data:image/jpeg;base64,{part}").prepare() for part in parts)
    return PreparedPage(address("page"), "web", None, text, len(text), len(text), images)


async def cpu_s(base_url: str, shown: PreparedPage | None) -> float:
    """Return the processor's seconds for one request, from the claim to the verdict."""
    client = LLMClient("openai", is_async=True, base_url=base_url)

    async def ask(number: int) -> None:
        messages = verification_messages("task", "answer " * 700, shown, f"claim {number}", "None")
        await client.chat(ChatRequest("o4-mini", messages, BinaryEvalResult))

    await asyncio.gather(*(ask(number) for number in range(10)))
    started = time.process_time()
    for first in range(0, REQUESTS, 10):
        await asyncio.gather(*(ask(number) for number in range(first, first + 10)))
    took_s = (time.process_time() - started) / REQUESTS
    await client.close()
    return took_s


def print_cpu() -> None:
    """Measure and print what one request costs."""
    title(f"Processor time of a judge request through the SDK, mean of {REQUESTS}, ten at a time")
    with SlowJudge(0.0) as server:
        for name, shown in (
            ("without a page", None),
            ("page with a screenshot of 1 MB", page()),
        ):
            show(name, asyncio.run(cpu_s(server.base_url, shown)))
    sys.stdout.flush()


def main() -> None:
    """Measure and print."""
    print_paces()
    print_cpu()


if __name__ == "__main__":
    main()
