"""Measure the processor time of a judge request, without a page and with a screenshot.

The judge is another process, over loopback; what is counted is everything a run does for a request:
making the question, its hash, looking it up, sending it, reading the reply, keeping it. Below that,
what parts of it take alone.
"""

from __future__ import annotations

import asyncio
import base64
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from measuring import show, title
from slow_judge import SlowJudge

from mind2web2.judge.answer_judge import AnswerJudge
from mind2web2.judge.caching import CachingJudge
from mind2web2.judge.judgment import judgment_key
from mind2web2.judge.protocol import QuestionContext
from mind2web2.judge.spec import JudgeSpec
from mind2web2.judge.store import FILE_NAME, JudgmentStore
from mind2web2.llm_client import LLMClient
from mind2web2.llm_client.chat import ChatRequest
from mind2web2.pages.prepared_page import PreparedPage
from mind2web2.prompts import HashedText
from mind2web2.verification.extractor import BinaryEvalResult
from mind2web2.verification.messages import verification_messages

LATENCY_S = 0.005
SCREENSHOT_BYTES = 1_000_000
REQUESTS = {"no page": 600, "a page with a 1 MB screenshot": 200}
AT_ONCE = (1, 30, 200)
ANSWER = "The town of Ottermoss has a lake, a ferry and a museum. " * 60


def page() -> PreparedPage:
    """Return a page as the library gives it to every claim."""
    picture = base64.b64encode(bytes(range(256)) * (SCREENSHOT_BYTES // 256)).decode()
    text = HashedText("The museum opened in 1921. " * 400)
    return PreparedPage(
        url="https://www.ottermoss.example/history",
        kind="web",
        sha256=text.sha256,
        text=text,
        text_chars=len(text),
        text_chars_stored=len(text),
        images=(HashedText(f"data:image/jpeg;base64,{picture}"),),
    )


def question(number: int, shown: PreparedPage | None) -> ChatRequest:
    """Return a question that no other has."""
    messages = verification_messages(
        "Find a town.", ANSWER, shown, f"It has {number} ferries.", None
    )
    return ChatRequest(model="o4-mini", messages=messages, template=BinaryEvalResult)


async def processor_s(ask: Callable[[int], Awaitable[object]], count: int, at_once: int) -> float:
    """Return the processor time of each of so many calls, after some that do not count."""
    limit = asyncio.Semaphore(at_once)

    async def one(number: int) -> None:
        async with limit:
            await ask(number)

    await asyncio.gather(*(one(-number) for number in range(1, at_once + 1)))
    started_s = time.process_time()
    await asyncio.gather(*(one(number) for number in range(count)))
    return (time.process_time() - started_s) / count


async def measure(url: str, folder: Path) -> None:
    """Measure and print."""
    for name, count in REQUESTS.items():
        shown = None if name == "no page" else page()
        title(f"Processor time of one request, {name}")
        for at_once in AT_ONCE:
            async with LLMClient("openai", is_async=True, base_url=url, api_key="none") as client:
                with JudgmentStore(folder / f"{at_once}-{shown is None}" / FILE_NAME) as store:
                    run = CachingJudge(JudgeSpec("o4-mini"), client, store)
                    judge = AnswerJudge(run, "overhead", "answer_1.md")

                    async def through_the_run(
                        number: int,
                        judge: AnswerJudge = judge,
                        shown: PreparedPage | None = shown,
                    ) -> None:
                        await judge.ask(
                            question(number, shown),
                            QuestionContext("verify", node="leaf"),
                            None,
                        )

                    show(
                        f"all of it, {at_once} at once",
                        await processor_s(through_the_run, count, at_once),
                    )
        await parts(url, shown, count)


async def parts(url: str, shown: PreparedPage | None, count: int) -> None:
    """Measure and print what takes how much of it."""

    async def client_only(number: int) -> None:
        await client.chat(question(number, shown))

    async def question_only(number: int) -> None:
        question(number, shown)

    async def question_and_key(number: int) -> None:
        judgment_key(question(number, shown), 1)

    async with LLMClient("openai", is_async=True, base_url=url, api_key="none") as client:
        show(
            "of it question, client and HTTP, 30 at once",
            await processor_s(client_only, count, 30),
        )
    show("of it making the question", await processor_s(question_only, count, 30))
    show(
        "of it making the question and its hash",
        await processor_s(question_and_key, count, 30),
    )


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder, SlowJudge(LATENCY_S) as server:
        asyncio.run(measure(server.base_url, Path(folder)))


if __name__ == "__main__":
    main()
