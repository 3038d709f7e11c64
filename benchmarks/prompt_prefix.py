"""Measure how much of the prompts is in a prefix that the run has already sent.

Providers charge a fraction for such a prefix, in whole blocks of 128 tokens. Tokens are counted by
a stand-in: four characters each, and images by the model's published rule from their size in
pixels. So the share is what the order of a prompt makes possible, whatever a provider then makes of
it.

No request waits for the first one about its page, so that requests in flight at the same time
cannot use each other's prefix. The share "after a reply" counts the prefixes of answered requests
alone.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import random
import sys
import tempfile
from base64 import b64decode
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from instant_judge import InstantProvider
from measuring import title
from PIL import Image

from mind2web2 import CacheFileSys, Evaluator
from mind2web2.judge.admission import DualSemaphore
from mind2web2.judge.answer_judge import AnswerJudge
from mind2web2.judge.caching import CachingJudge
from mind2web2.judge.judgment import Judgment
from mind2web2.judge.permit import AnswerLimits
from mind2web2.judge.protocol import QuestionContext
from mind2web2.judge.spec import JudgeSpec
from mind2web2.judge.store import JudgmentStore
from mind2web2.judge.transfer import open_for_replay
from mind2web2.llm_client.chat import ChatRequest
from mind2web2.llm_client.prices import image_tokens
from mind2web2.pages.library import PageLibrary
from mind2web2.results.answers import RunFolders, select_work
from mind2web2.runs.answer import RunParts
from mind2web2.runs.concurrency import Concurrency
from mind2web2.runs.run import RunProgress, evaluate_work
from mind2web2.utils.path_config import PathConfig

REPOSITORY = Path(__file__).resolve().parent.parent
MODEL = "o4-mini"
CHARS_A_TOKEN = 4
BLOCK_TOKENS = 128
TARGET_PERCENT = 80
PAGES, CHECKS_A_PAGE = 6, 5
# A run's default, and what one may choose to pay less: --max_llm_requests.
IN_FLIGHT = (30, 5)
LATENCY_S = 0.2


class Ledger:
    """Counts the tokens of requests, and those in blocks that an earlier request began with.

    Args:
        after_reply: only requests that are answered count as earlier ones.
    """

    def __init__(self, *, after_reply: bool = False) -> None:
        self.requests = self.tokens = self.shared_tokens = 0
        self._prefixes: set[bytes] = set()
        self._after_reply = after_reply

    def note(self, request: ChatRequest) -> list[bytes]:
        """Count a request as it is sent, and return its prefixes."""
        tokens = [token for message in request.messages for token in _tokens(message["content"])]
        prefixes = list(_prefixes(tokens))
        shared = 0
        while shared < len(prefixes) and prefixes[shared] in self._prefixes:
            shared += 1
        if not self._after_reply:
            self._prefixes.update(prefixes)
        self.requests += 1
        self.tokens += len(tokens)
        self.shared_tokens += shared * BLOCK_TOKENS
        return prefixes

    def note_reply(self, prefixes: list[bytes]) -> None:
        """Count a request as answered."""
        self._prefixes.update(prefixes)

    def show(self, what: str) -> None:
        """Print the share."""
        percent = 100 * self.shared_tokens / self.tokens
        sys.stdout.write(
            f"  {what:<88} {percent:5.1f}% of {self.tokens / 1000:6.0f}k tokens in "
            f"{self.requests:3} requests"
            f" (target {TARGET_PERCENT}%)\n"
        )
        sys.stdout.flush()


class NotingJudge(CachingJudge):
    """A run's judge that counts its questions, with and without further trials.

    Args:
        in_flight: so many requests at the same time, each for ``LATENCY_S``.
    """

    def __init__(
        self,
        settings: JudgeSpec,
        store: JudgmentStore,
        *,
        is_replay: bool,
        in_flight: int,
    ) -> None:
        super().__init__(settings, None if is_replay else InstantProvider(), store)
        self.all, self.first_trials = Ledger(), Ledger()
        self.after_reply = Ledger(after_reply=True)
        self._in_flight = in_flight
        self._places = asyncio.Semaphore(in_flight)

    async def judgment(
        self,
        request: ChatRequest,
        subject: QuestionContext,
        source: tuple[str, str],
        limits: AnswerLimits,
    ) -> Judgment:
        """Count, and answer after a while."""
        async with self._places:
            self.all.note(request)
            if subject.trial == 1:
                self.first_trials.note(request)
            prefixes = self.after_reply.note(request)
            await asyncio.sleep(LATENCY_S)
            self.after_reply.note_reply(prefixes)
            return await super().judgment(request, subject, source, limits)

    def show(self, what: str) -> None:
        """Print the shares; those of all requests do not depend on how many are in flight."""
        if self._in_flight == IN_FLIGHT[0]:
            self.all.show(what)
            self.first_trials.show(f"{what}, one trial a claim")
        self.after_reply.show(f"{what}, after a reply, {self._in_flight} in flight")


def _tokens(content: object) -> Iterator[str]:
    """Yield stand-ins for the tokens of a message, texts that follow each other taken as one."""
    text = ""
    for part in [{"type": "text", "text": content}] if isinstance(content, str) else content:  # type: ignore[attr-defined]
        if part["type"] == "text":
            text += part["text"]
            continue
        yield from _words(text)
        text = ""
        url = part["image_url"]["url"]
        digest = hashlib.sha256(url.encode()).hexdigest()
        yield from (f"{digest} {number}" for number in range(_image_tokens(url)))
    yield from _words(text)


def _words(text: str) -> Iterator[str]:
    return (text[start : start + CHARS_A_TOKEN] for start in range(0, len(text), CHARS_A_TOKEN))


@cache
def _image_tokens(url: str) -> int:
    with Image.open(io.BytesIO(b64decode(url.partition(",")[2]))) as image:
        return image_tokens(MODEL, *image.size)


def _prefixes(tokens: list[str]) -> Iterator[bytes]:
    state = hashlib.sha256()
    for start in range(0, len(tokens) - BLOCK_TOKENS + 1, BLOCK_TOKENS):
        state.update("\0".join(tokens[start : start + BLOCK_TOKENS]).encode())
        yield state.digest()


def prose(chars: int, seed: int) -> str:
    """Return made-up text, the same each time."""
    choose = random.Random(seed)
    return " ".join(
        f"{choose.choice('abcdefghij')}{choose.randrange(10**6)}" for _ in range(chars // 7)
    )[:chars]


def screenshot(seed: int, height_px: int) -> bytes:
    """Return a picture that no other equals."""
    buffer = io.BytesIO()
    Image.new("RGB", (1100, height_px), (seed, 200, 100)).save(buffer, "JPEG")
    return buffer.getvalue()


async def example(judge: NotingJudge, results: Path) -> None:
    """Score the example's nine answers."""
    paths = PathConfig(REPOSITORY)
    run = RunParts(
        judge=judge,
        library=PageLibrary(),
        limits=DualSemaphore(asyncio.Semaphore(10), asyncio.Semaphore(IN_FLIGHT[0])),
        reuse=False,
        answer_timeout_s=None,
    )
    work = select_work(paths, "example")
    folders = RunFolders("example", paths.cache_root, results)
    outcomes = await evaluate_work(work, folders, run, Concurrency(), RunProgress())
    if any(outcome.result is None for outcome in outcomes):
        raise SystemExit("an answer of the example has no result")


async def synthetic(judge: NotingJudge, folder: Path, page_chars: int, screenshot_px: int) -> None:
    """Verify 30 claims on 6 pages at the same time, page by page in turn."""
    cache = CacheFileSys(folder)
    urls = [f"https://www.ottermoss.example/{number}" for number in range(PAGES)]
    for number, url in enumerate(urls):
        cache.put_web(
            url,
            prose(page_chars, number),
            screenshot(number, screenshot_px) if screenshot_px else None,
        )
    evaluator = Evaluator()
    evaluator.initialize(
        "prefix",
        client=AnswerJudge(judge, "prefix", "answer_1.md"),
        task_description=prose(600, 100),
        answer=prose(5000, 101),
        global_cache=cache,
    )
    claims = (
        evaluator.verify(
            f"The page says of number {number}: {prose(120, 200 + number)}",
            None,
            urls[number % PAGES],
        )
        for number in range(PAGES * CHECKS_A_PAGE)
    )
    await asyncio.gather(*claims)


def main() -> None:
    """Measure and print."""
    title(
        "Input tokens in a prefix that an earlier request of the run has sent, blocks of 128 tokens"
    )
    for in_flight in IN_FLIGHT:
        with tempfile.TemporaryDirectory() as folder:
            _measure(Path(folder), in_flight)


def _measure(folder: Path, in_flight: int) -> None:
    with open_for_replay(REPOSITORY / "examples" / "judgments.jsonl") as store:
        settings = JudgeSpec(store.identities()[0].model, provider="replay")
        judge = NotingJudge(settings, store, is_replay=True, in_flight=in_flight)
        asyncio.run(example(judge, folder / "results"))
        judge.show("the example, nine answers")
    for name, page_chars, screenshot_px in (
        ("pages of 2 KB of text", 2000, 0),
        ("pages of 20 KB of text", 20_000, 0),
        ("pages of 20 KB with a screenshot of 6,000 px", 20_000, 6000),
    ):
        with JudgmentStore(None) as store:
            judge = NotingJudge(
                JudgeSpec(MODEL),
                store,
                is_replay=False,
                in_flight=in_flight,
            )
            asyncio.run(synthetic(judge, folder / name, page_chars, screenshot_px))
            judge.show(f"30 checks on 6 {name}")


if __name__ == "__main__":
    main()
