"""arXiv for eval scripts: papers by identifier or by title."""

from __future__ import annotations

import asyncio
import logging
import re
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict

from mind2web2.api_tools.arxiv_papers import (
    ArxivId,
    id_from_pdf_link,
    normalise_title,
    parse_arxiv_id,
    plain_words,
    title_words,
)
from mind2web2.api_tools.surroundings import service_answer
from mind2web2.errors import ToolError
from mind2web2.judge.service_request import ServiceRequest
from mind2web2.utils.api_misuse import script_api
from mind2web2.utils.private_attributes import check_private_attributes

if TYPE_CHECKING:
    import arxiv  # type: ignore[import-untyped]  # it ships without types
    import requests

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
        with ToolError.naming_extra("The arXiv tool", "arxiv"):
            import arxiv
            import requests

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
