"""arXiv for eval scripts: papers by identifier or by title."""

from __future__ import annotations

import asyncio
import logging
import re
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict
from urllib.parse import unquote, urlsplit

from mind2web2.api_tools.surroundings import service_answer
from mind2web2.errors import ToolError
from mind2web2.judge.service_request import ServiceRequest
from mind2web2.utils.api_misuse import script_api
from mind2web2.utils.extras import missing_extra
from mind2web2.utils.private_attributes import check_private_attributes

if TYPE_CHECKING:
    import arxiv  # type: ignore[import-untyped]  # it ships without types
    import requests

_NEW_ID = r"\d{2}(?:0[1-9]|1[0-2])\.\d{4,5}"
_OLD_ID = r"[a-z]+(?:-[a-z]+)?(?:\.[a-z]{2})?/\d{2}(?:0[1-9]|1[0-2])\d{3}"
_ID = re.compile(
    rf"(?P<paper>{_NEW_ID}|{_OLD_ID})(?:v(?P<version>[1-9]\d*))?",
    re.ASCII | re.IGNORECASE,
)
# math.GT/0309136 and math/0309136 are one paper; arXiv itself writes the second.
_SUBJECT_CLASS = re.compile(r"\.[a-z]{2}/")
_PREFIX = re.compile(r"arxiv\s*:\s*", re.IGNORECASE)
_HOST = re.compile(r"(?:[a-z]{2,8}\.)?arxiv\.org", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ArxivId:
    """A paper on arXiv, and its version if one is given."""

    paper: str
    version: int | None = None

    def __str__(self) -> str:
        if self.version is None:
            return self.paper
        return f"{self.paper}v{self.version}"


def parse_arxiv_id(text: str) -> ArxivId | None:
    """Read ``2301.00001v2``, ``hep-th/9901001``, either with ``arXiv:``, or an arXiv link.

    Else ``None``.
    """
    text = text.strip()
    if (from_link := _id_from_link(text, {"abs", "pdf", "html"})) is not None:
        return from_link
    return _match_id(_PREFIX.sub("", text, count=1))


def id_from_pdf_link(link: str) -> ArxivId | None:
    """Return the paper whose PDF the link serves, ``None`` if it is not such a link."""
    return _id_from_link(link.strip(), {"pdf"})


def _id_from_link(link: str, kinds: set[str]) -> ArxivId | None:
    try:
        parts = urlsplit(link if "://" in link else f"https://{link}")
        host = parts.hostname or ""
    except ValueError:
        return None
    kind, _, rest = unquote(parts.path).lstrip("/").partition("/")
    if parts.scheme not in {"http", "https"} or not _HOST.fullmatch(host) or kind not in kinds:
        return None
    return _match_id(rest.rstrip("/").removesuffix(".pdf"))


def _match_id(text: str) -> ArxivId | None:
    match = _ID.fullmatch(text.strip())
    if match is None:
        return None
    paper = _SUBJECT_CLASS.sub("/", match["paper"].lower())
    return ArxivId(paper, int(match["version"]) if match["version"] else None)


_COMMAND = re.compile(r"\\([a-zA-Z]+)\s*")
_ACCENT = re.compile(r"\\[\"'`^~=.]|\\[cuvHdbrk](?=\s|\{)")
# Commands that shape the text after them, unlike symbols such as \alpha.
_SHAPING = re.compile(
    r"(?:math|text)?(?:rm|it|bf|sf|tt|sc|bb|cal|frak|scr)"
    r"|em|emph|text|bm|boldsymbol|operatorname|ensuremath|left|right|[mh]box"
)
_MARKUP = re.compile(r"[\\${}]")
_BETWEEN_DIGITS = re.compile(r"(?<=\d)[^\w+#]+(?=\d)")
_PUNCTUATION = re.compile(r"[^\w+# ]|_")


def normalise_title(title: str) -> str:
    """Return the normal form of a title.

    ``Pre-Training`` and ``pretraining`` agree, and a Greek letter with its LaTeX command; but not
    ``1.5`` and ``15``, nor ``C++`` and ``C``.
    """
    text = unicodedata.normalize("NFKD", _without_commands(title, shaping=""))
    text = "".join(_spell(character) for character in text).casefold()
    text = _PUNCTUATION.sub("", _BETWEEN_DIGITS.sub(" ", text))
    # White space counts between digits only: "Mind2Web 2" is "Mind2Web-2" and "Mind2Web2" alike.
    return re.sub(r"(?<!\d) | (?!\d)", "", text)


def title_words(title: str) -> list[str]:
    """Return the words of a title as a search engine would index them, without markup."""
    return re.findall(r"\w+", re.sub(r"[${}]", "", _without_commands(title, shaping=" ")))


def plain_words(title: str) -> list[str]:
    """Return the words that are written alike wherever a title is: ASCII, apart from all markup."""
    tokens = re.split(r"[\s-]+", title)
    return re.findall(
        r"\w+",
        " ".join(token for token in tokens if token.isascii() and not _MARKUP.search(token)),
    )


def _without_commands(title: str, shaping: str) -> str:
    """Replace LaTeX's commands by their names, and those that only shape by ``shaping``."""

    def replacement(match: re.Match[str]) -> str:
        if _SHAPING.fullmatch(match[1]):
            return shaping
        return match[1].removeprefix("var")

    return _COMMAND.sub(replacement, _ACCENT.sub("", title))


def _spell(character: str) -> str:
    """Return a Greek letter's name, and other characters without their accents."""
    if unicodedata.combining(character):
        return ""
    name = unicodedata.name(character, "")
    return (
        name.rsplit(" ", 1)[-1].lower()
        if name.startswith("GREEK ") and " LETTER " in name
        else character
    )


log = logging.getLogger(__name__)

API_URL = "https://export.arxiv.org/api/query"
# arXiv's terms of use: no more than one request every three seconds, over one connection.
REQUEST_INTERVAL_S = 3.0
MAX_RETRIES = 3
TIMEOUT_S = (5.0, 20.0)  # to connect, and between two pieces of the answer
_FEED_START = re.compile(rb"<feed[\s>]")
_TOTAL = re.compile(rb"<(?:\w{1,20}:)?totalResults[^<>]*>\s*+(\d{1,9})\s*+<")

# One thread and one client per setting, shared by all tools of the process, is how those terms are
# kept.
_request_thread = ThreadPoolExecutor(1, thread_name_prefix="arxiv")
_clients: dict[tuple[str, int, float], arxiv.Client] = {}


class Paper(TypedDict):
    """A paper as scripts receive it; dates are ISO 8601."""

    arxiv_id: str
    version: int | None
    entry_id: str
    title: str
    authors: list[str]
    summary: str
    published: str
    updated: str
    primary_category: str
    categories: list[str]
    comment: str | None
    journal_ref: str | None
    doi: str | None
    pdf_url: str | None
    links: list[str]


@script_api
class ArxivTool:
    """Looks papers up on arXiv.

    A failure of the service is a ``ToolError``, never a "no such paper".
    """

    def __init__(
        self,
        page_size: int = 100,
        *,
        api_url: str = API_URL,
        request_interval_s: float = REQUEST_INTERVAL_S,
    ) -> None:
        self._page_size = page_size
        self._settings = (api_url, page_size, request_interval_s)

    @staticmethod
    def is_arxiv_pdf_link(link: str) -> bool:
        """Return whether a link serves the PDF of an arXiv paper."""
        return id_from_pdf_link(link) is not None

    @staticmethod
    def get_arxiv_id_from_pdf_link(link: str) -> str | None:
        """Return the identifier in a PDF link, with its version if it has one.

        ``None`` for other links.
        """
        identifier = id_from_pdf_link(link)
        return None if identifier is None else str(identifier)

    async def search_arxiv_by_id(self, arxiv_id: str) -> Paper | None:
        """Return the fields of a paper, in the named version or the latest.

        Identifiers may be of either kind, with ``arXiv:``, or links; any other text matches no
        paper.
        """
        identifier = parse_arxiv_id(arxiv_id)
        if identifier is None:
            return None
        request = ServiceRequest("arxiv", "by_id", [str(identifier)])
        paper: Paper | None = await service_answer(request, partial(self._by_id, identifier))
        return paper

    async def search_arxiv_by_title(self, title: str) -> Paper | None:
        """Return the fields of the paper with this very title, in whatever spelling, or ``None``.

        Case, white space, punctuation, accents and LaTeX make no difference; words do.
        """
        if not normalise_title(title) or not title_words(title):
            return None
        request = ServiceRequest("arxiv", "by_title", [title], {"page_size": self._page_size})
        paper: Paper | None = await service_answer(request, partial(self._by_title, title))
        return paper

    async def _by_id(self, identifier: ArxivId) -> Paper | None:
        for paper in await self._search(id_list=[str(identifier)]):
            found = parse_arxiv_id(paper.entry_id)
            if (
                found is not None
                and found.paper == identifier.paper
                and identifier.version in {None, found.version}
            ):
                return _fields(paper, found)
        return None

    async def _by_title(self, title: str) -> Paper | None:
        normal_title, words = normalise_title(title), title_words(title)
        # The phrase finds most papers at once, its plain words those that arXiv spells with other
        # markup.
        phrase = f'ti:"{" ".join(words)}"'
        for query in (
            phrase,
            " AND ".join(f"ti:{word}" for word in plain_words(title) or words),
        ):
            for paper in await self._search(query=query):
                found = parse_arxiv_id(paper.entry_id)
                if found is not None and normalise_title(paper.title) == normal_title:
                    return _fields(paper, found)
        return None

    async def _search(
        self, query: str = "", id_list: list[str] | None = None
    ) -> list[arxiv.Result]:
        """Return at most a page of matches, best first."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(_request_thread, self._search_blocking, query, id_list)

    def _search_blocking(self, query: str, id_list: list[str] | None) -> list[arxiv.Result]:
        try:
            import arxiv
            import requests
        except ModuleNotFoundError as error:
            raise ToolError(missing_extra("The arXiv tool", "arxiv", "arxiv")) from error

        search = arxiv.Search(query=query, id_list=id_list, max_results=self._page_size)
        try:
            return list(_client(*self._settings).results(search))
        except arxiv.HTTPError as error:
            raise ToolError(f"arxiv failed: HTTP {error.status} for {query or id_list}") from error
        except (arxiv.ArxivError, requests.RequestException, ValueError) as error:
            reason = " ".join(str(error).split())
            raise ToolError(
                f"arxiv did not answer the search for {query or id_list}: {reason}"
            ) from error


def _open_session() -> requests.Session:
    """Return a session with time limits, in which only a proper answer is one.

    The library tries again after a ``ConnectionError``. By itself it reads an error page, or an
    answer cut short, as a list of no papers.
    """
    import requests

    session = requests.Session()
    usual_get = session.get

    def get(*args: Any, **kwargs: Any) -> requests.Response:  # Any: whatever requests takes
        try:
            response = usual_get(*args, timeout=TIMEOUT_S, **kwargs)
        except (requests.Timeout, requests.exceptions.ChunkedEncodingError) as error:
            raise requests.ConnectionError(
                f"no complete answer ({type(error).__name__})"
            ) from error
        problem = (
            feed_problem(response.content) if response.status_code == requests.codes.ok else None
        )
        if problem is not None:
            raise requests.ConnectionError(problem)
        return response

    session.get = get  # type: ignore[method-assign]
    return session


def feed_problem(content: bytes) -> str | None:
    """Return why content is not a proper answer, ``None`` for one that is."""
    if _FEED_START.search(content) is None or not content.rstrip().endswith(b"</feed>"):
        return "the answer is not a whole Atom feed"
    if b"arxiv.org/api/errors" in content:
        return "the answer is an error report"
    total = _TOTAL.search(content)
    # arXiv itself now and then sends an empty list and says in the same breath that there are
    # matches.
    if total is not None and int(total[1]) > 0 and b"<entry" not in content:
        return "the answer lists none of the papers that it counts"
    return None


def _client(api_url: str, page_size: int, request_interval_s: float) -> arxiv.Client:
    """Return the client for these settings; called in the one thread only."""
    import arxiv

    key = (api_url, page_size, request_interval_s)
    if key not in _clients:
        check_private_attributes("arxiv")
        client = arxiv.Client(page_size, request_interval_s, MAX_RETRIES)
        client.query_url_format = api_url + "?{}"
        # The library has no setting for time limits, and takes any page for an empty list of
        # papers.
        client._session = _open_session()
        _clients[key] = client
    return _clients[key]


def _fields(paper: arxiv.Result, identifier: ArxivId) -> Paper:
    return {
        "arxiv_id": identifier.paper,
        "version": identifier.version,
        "entry_id": paper.entry_id,
        "title": paper.title.strip(),
        "authors": [author.name for author in paper.authors],
        "summary": paper.summary.strip(),
        "published": paper.published.isoformat(),
        "updated": paper.updated.isoformat(),
        "primary_category": paper.primary_category,
        "categories": list(paper.categories),
        "comment": paper.comment,
        "journal_ref": paper.journal_ref,
        "doi": paper.doi,
        "pdf_url": paper.pdf_url,
        "links": [link.href for link in paper.links],
    }
