"""Every parser that meets outside data, with what it may raise and sound inputs to start from."""

from __future__ import annotations

import asyncio
import contextlib
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
from fixtures.pdf_files import pdf as sound_pdf
from inputs.hostile_files import png, small_image
from pydantic import BaseModel

from mind2web2.analysis.summaries import (
    generate_result_summary,
    merge_all_results,
    write_task_summary,
)
from mind2web2.api_tools.arxiv_papers import (
    id_from_pdf_link,
    normalise_title,
    parse_arxiv_id,
    plain_words,
    title_words,
)
from mind2web2.api_tools.tool_arxiv import feed_problem
from mind2web2.capture.page.documents import (
    FetchedDocument,
    file_name_of,
    is_attachment,
)
from mind2web2.capture.pdf import RenderSettings, render_pages
from mind2web2.errors import Mind2Web2Error
from mind2web2.judge.judgment import Judgment
from mind2web2.judge.store import JudgmentStore
from mind2web2.judge.transfer import open_for_replay
from mind2web2.llm_client import claude_protocol, openai_protocol
from mind2web2.llm_client.chat import Completion
from mind2web2.llm_client.failures import RequestFailedError, failure_from_body
from mind2web2.llm_client.settings import check_address, public_address
from mind2web2.llm_client.structured_output import InvalidOutputError, read_reply
from mind2web2.pages.cache import CacheFileSys
from mind2web2.pages.citations import cited_urls, listed_urls
from mind2web2.pages.cited_pages import AgentCache, TaskCitations
from mind2web2.results.answers import answer_files, read_answer
from mind2web2.runs.estimate import task_usages
from mind2web2.urls.markdown import regex_find_urls
from mind2web2.urls.parts import (
    likely_keys,
    lookup_key,
    normalize_url_for_browser,
    normalize_url_simple,
    remove_utm_parameters,
    storage_key,
)
from mind2web2.utils.images import cut_screenshot, size_px, to_jpeg
from mind2web2.utils.misc import normalize_url_markdown, text_dedent
from mind2web2.utils.retry_after import retry_after_s
from mind2web2.utils.workers import run_in_worker

Read = Callable[[bytes, Path], None]

_WORKER_LIMIT_S = 30.0
_STEM = "0123456789abcdef0123456789abcdef"


@dataclass(frozen=True)
class Parser:
    """One parser.

    Args:
        read: takes the input and an empty folder to put it in.
        seeds: sound inputs.
        raises: what it may raise beside the errors of the package: what others translate, one step
            up.
        is_json: whether made-up values of JSON are worth trying.
        is_slow: whether it reads in a worker process, within a time limit of its own.
    """

    read: Read
    seeds: tuple[bytes, ...]
    raises: tuple[type[Exception], ...] = ()
    is_json: bool = False
    is_slow: bool = False

    def fault(self, content: bytes, folder: Path) -> str | None:
        """Read an input and say what is wrong with how that ended, ``None`` where nothing is."""
        try:
            self.read(content, folder)
        except Mind2Web2Error as error:
            if len(str(error).splitlines()) != 1:
                return f"{type(error).__name__} of more than a line: {error}"
        except self.raises:
            return None
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return None


class _Verdict(BaseModel):
    reasoning: str = ""
    result: bool


class _Tree(BaseModel):
    name: str | None = None
    children: list[_Tree] = []


def _text(content: bytes) -> str:
    # Half surrogates and all.
    return content.decode("utf-8", "surrogatepass" if b"\xed" in content else "replace")


def _lenient_text(content: bytes) -> str:
    with contextlib.suppress(UnicodeDecodeError):
        return _text(content)
    return content.decode("latin-1")


def _read_answer(content: bytes, folder: Path) -> None:
    path = folder / "agent" / "task" / "answer_1.md"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    for text in (_lenient_text(content), read_answer(path)):
        urls = cited_urls(text)
        assert None not in map(lookup_key, urls)
        regex_find_urls(text)


def _read_url(content: bytes, _: Path) -> None:
    url = _lenient_text(content)
    page, simple, opened = (
        lookup_key(url),
        normalize_url_simple(url),
        normalize_url_for_browser(url),
    )
    assert normalize_url_simple(simple) == simple
    assert normalize_url_for_browser(opened) == opened
    for spelling in (remove_utm_parameters(url), *likely_keys(url)[:1]):
        assert page in (None, lookup_key(spelling))
    if page is not None:
        assert lookup_key(storage_key(url)) == page
    normalize_url_markdown(url)
    text_dedent(url)
    id_from_pdf_link(url)
    parse_arxiv_id(url)


def _read_title(content: bytes, _: Path) -> None:
    title = _lenient_text(content)
    assert normalise_title(title).strip() == normalise_title(title)
    title_words(title)
    plain_words(title)


def _read_address(content: bytes, _: Path) -> None:
    url = _lenient_text(content)
    check_address(url, "OPENAI_BASE_URL")
    public_address(url)


def _use_cache(folder: Path) -> None:
    cache = CacheFileSys(folder / "task")
    (
        cache.get_all_urls(),
        cache.summary(),
        cache.capture_records(),
        cache.has("http://a.example/x"),
    )
    cache.put_web("http://new.example/", "text", None)
    assert cache.get_web("http://new.example/") == ("text", None)
    cache.save()


def _read_in_cache(name: str) -> Read:
    def read(content: bytes, folder: Path) -> None:
        (folder / "task").mkdir()
        (folder / "task" / f"{_STEM}.txt").write_bytes(content)
        (folder / "task" / name).write_bytes(content)
        _use_cache(folder)
        AgentCache(folder).holders()

    return read


def _read_page_text(content: bytes, folder: Path) -> None:
    cache = CacheFileSys(folder)
    cache.put_web("http://a.example/x", "text", None)
    next(folder.glob("*.txt")).write_bytes(content)
    text, _ = cache.get_web("http://a.example/x")
    assert len(text) <= len(content)
    cache.digest("http://a.example/x")


def _read_citations(content: bytes, folder: Path) -> None:
    (folder / "task.json").write_bytes(content)
    AgentCache(folder).pages_of(
        TaskCitations("task", {"answer_1.md": listed_urls(folder / "task.json")})
    )


def _read_result(content: bytes, folder: Path) -> None:
    results = folder / "agent" / "task" / "answer_1" / "results"
    results.mkdir(parents=True)
    (results / "20250101_000000_answer_1.md.json").write_bytes(content)
    (results.parent / "answer_1.md").write_bytes(content)
    _sum_up(folder)


def _read_task_summary(content: bytes, folder: Path) -> None:
    (folder / "agent" / "task" / "answer_1" / "results").mkdir(parents=True)
    (folder / "agent" / "task" / "summary.json").write_bytes(content)
    _sum_up(folder)


def _sum_up(folder: Path) -> None:
    generate_result_summary(folder, "agent")
    merge_all_results(folder)
    task_usages(folder / "agent" / "task")
    write_task_summary(folder, "agent", "task", {}, {"answer_1.md"}, {})
    for path in (folder / "all_results.json", folder / "agent" / "summary.json"):
        json.loads(path.read_bytes())


def _judgment() -> Judgment:
    return Judgment(
        key="0" * 64,
        endpoint="http://judge.example",
        model="m",
        outcome="reply",
        text='{"reasoning": "so", "result": true}',
        created="2025-01-01T00:00:00+00:00",
        purpose="verify",
        input_tokens=5,
    )


def _stored_judgments() -> bytes:
    """Return a store of a few judgments as its file has it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "seed.sqlite3"
        with JudgmentStore(path) as store:
            store.add(
                _judgment().model_copy(update={"key": f"{number:064x}"}) for number in range(20)
            )
        return path.read_bytes()


def _read_judgments(name: str) -> Read:
    def read(content: bytes, folder: Path) -> None:
        path = folder / name
        path.write_bytes(content)
        with open_for_replay(path) as store:
            store.all(), store.identities()
            asyncio.run(store.get("0" * 64))
            asyncio.run(store.put(_judgment()))

    return read


def _read_meta(content: bytes, folder: Path) -> None:
    (folder / "answer_1.md").write_text("answer")
    (folder / "answer_1.meta.json").write_bytes(content)
    [answer], _ = answer_files(folder)
    assert answer.time_s is None or answer.time_s >= 0


def _read_document(content: bytes, _: Path) -> None:
    head, _, body = content.partition(b"\n")
    header = head.decode("latin-1")
    document = FetchedDocument("http://a.example/x", header, body, file_name_of(header))
    document.kind()
    document.text().encode("utf-8", "surrogatepass")
    is_attachment(header)
    retry_after_s({"retry-after": header, "retry-after-ms": header})


def _read_reply(content: bytes, _: Path) -> None:
    text = _lenient_text(content)
    failure_from_body(500, text)
    for template in (_Verdict, _Tree):
        with contextlib.suppress(InvalidOutputError):
            read_reply(Completion(text=text), template)
    with contextlib.suppress(RequestFailedError):
        claude_protocol.read_completion(text)
    read_reply(openai_protocol.read_completion(text), _Verdict)


def _read_feed(content: bytes, _: Path) -> None:
    feed_problem(content)


def _in_worker(function: Callable[..., Any], *arguments: object) -> None:
    asyncio.run(run_in_worker(function, *arguments, timeout_s=_WORKER_LIMIT_S))


def _read_image(content: bytes, _: Path) -> None:
    with contextlib.suppress(Mind2Web2Error):
        size_px(content[:1000])
    _in_worker(to_jpeg, content)
    _in_worker(cut_screenshot, content)


def _read_pdf(content: bytes, _: Path) -> None:
    _in_worker(
        render_pages,
        content,
        RenderSettings(max_image_pages=2, max_text_pages=5, dpi=36),
    )


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


def _chat_completion(text: str) -> bytes:
    return _json(
        {
            "choices": [{"message": {"content": text}}],
            "usage": {"prompt_tokens": 1},
            "model": "m",
        }
    )


_RECORD = {
    "requested_url": "http://a.example/x",
    "final_url": "http://a.example/y",
    "kind": "web",
    "captured_at": "2025-01-01T00:00:00+00:00",
    "troubles": [{"kind": "soft_404", "detail": "says so"}],
    "timings_s": {"open": 0.5},
}
_RESULT = {
    "agent_name": "agent",
    "answer_name": "answer_1.md",
    "final_score": 0.5,
    "judge_model": "m",
    "time_seconds": 3.5,
    "judge_usage": {"judgments": 2, "input_tokens": 9, "output_tokens": 1},
    "eval_breakdown": [
        {"info": [], "verification_tree": {"id": "root", "score": 0.5, "children": []}}
    ],
}
_ENTRIES = [
    {"answer_name": "answer_1.md", "score": 0.5, "status": "success", "success": False},
    {
        "answer_name": "answer_2.md",
        "score": None,
        "status": "unscored",
        "earlier_result": "x",
        "reason": "so",
    },
]
_CITED = {
    "agent_name": "agent",
    "all_unique_urls": ["http://a.example/x"],
    "urls": {"http://a.example/x": ["answer_1.md"]},
    "url_types": {"http://a.example/x": "web"},
}
_ANSWER = (
    "# Found\n\n- [one](https://a.example/x_(y)?q=1#/r) and <http://b.example>\n"
    '- ![p](http://c.example/p.png "t") and www.d.example/z, e.example/f[1]\n\n'
    "| a | b |\n|---|---|\n| <a href='http://f.example'>f</a> | `g.example/x` |\n\n[r]: "
    "http://h.example\n"
)
_FEED = b"<?xml version='1.0'?><feed xmlns='x'><totalResults>1</totalResults><entry/></feed>\n"

PARSERS: dict[str, Parser] = {
    "answer": Parser(_read_answer, (_ANSWER.encode(),)),
    "url": Parser(
        _read_url,
        (
            b"HTTPS://User@WWW.Example.com:443/a%2Fb/../c%20d?utm_source=x&b=%C3%A9+1#/route",
            "http://münchen.example/straße\\_1".encode(),
            b"https://arxiv.org/pdf/2301.00001v2.pdf",
        ),
    ),
    "title": Parser(_read_title, (rb"On $\alpha$-{GAN}s: \textit{C++} 1.5 \'etude",)),
    "judge address": Parser(_read_address, (b"http://user:pass@judge.example:8000/v1",)),
    "cache index": Parser(
        _read_in_cache("index.json"),
        (_json({"http://a.example/x": "web", "b.example": "pdf"}),),
        is_json=True,
    ),
    "note of a replaced page": Parser(
        _read_in_cache(".replacing.json"),
        (_json({f"{_STEM}.txt": ".writing-0123456789abcdef", f"{_STEM}.jpg": None}),),
        is_json=True,
    ),
    "capture record": Parser(
        _read_in_cache(f"{_STEM}.capture.json"), (_json(_RECORD),), is_json=True
    ),
    "page text": Parser(_read_page_text, (b"text\n", b"\xef\xbb\xbftext \xe9")),
    "citations": Parser(_read_citations, (_json(_CITED),), is_json=True),
    "result": Parser(_read_result, (_json(_RESULT),), is_json=True),
    "task summary": Parser(_read_task_summary, (_json(_ENTRIES),), is_json=True),
    "exported judgments": Parser(
        _read_judgments("judgments.jsonl"),
        (_judgment().model_dump_json().encode() + b"\n",),
        is_json=True,
    ),
    "stored judgments": Parser(_read_judgments("judgments.sqlite3"), (_stored_judgments(),)),
    "answer's time": Parser(_read_meta, (_json({"time_seconds": 512.3}),), is_json=True),
    "document": Parser(
        _read_document,
        (
            b"text/html; charset=utf-8\n<!-- a --><!doctype html><p>x",
            b"attachment; filename*=utf-8''a%20b.csv; charset=latin-1\n\xe9,\xe8\n",
        ),
    ),
    "judge reply": Parser(
        _read_reply,
        (
            _chat_completion('{"reasoning": "so", "result": true}'),
            _chat_completion('<think>hm</think>```json\n{"result": false}\n```'),
            _json({"error": {"message": "too many", "code": 429}}),
            _json({"content": [{"type": "tool_use", "input": {"result": True}}]}),
        ),
        (RequestFailedError, InvalidOutputError),
        is_json=True,
    ),
    "arxiv feed": Parser(_read_feed, (_FEED,), (requests.ConnectionError,)),
    "image": Parser(
        _read_image,
        (
            *map(small_image, ("PNG", "JPEG", "WEBP", "GIF", "BMP")),
            png(9, 9, 8, 6),
            small_image("GIF", 3),
        ),
        is_slow=True,
    ),
    "pdf": Parser(_read_pdf, (sound_pdf(["one"], ["two", "lines"]),), is_slow=True),
}
