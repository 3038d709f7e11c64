"""The arXiv tool against a local server that answers in Atom, and arXiv's links and identifiers."""

import pytest
from servers.arxiv_server import ArxivServer, feed
from servers.local_http import Answer

from mind2web2.api_tools.arxiv_papers import normalise_title
from mind2web2.api_tools.tool_arxiv import ArxivTool
from mind2web2.errors import ToolError


@pytest.fixture
def arxiv():
    """A server whose faults tests may set."""
    return ArxivServer()


@pytest.fixture
def web(arxiv):
    """The running server."""
    with arxiv.serve() as running:
        yield running


@pytest.fixture
def tool(web):
    """A tool that asks the local server and leaves out the pauses that arXiv asks for."""
    return ArxivTool(api_url=f"{web.url}/api/query", request_interval_s=0)


@pytest.mark.parametrize(
    ("link", "arxiv_id"),
    [
        ("https://arxiv.org/pdf/2401.00001", "2401.00001"),
        ("http://www.arxiv.org/pdf/2401.00001v2.pdf", "2401.00001v2"),
        (" arxiv.org/pdf/2401.00001.pdf#page=3 ", "2401.00001"),
        (
            "https://export.arxiv.org/pdf/hep-th/9901001v1?download=1",
            "hep-th/9901001v1",
        ),
        ("https://arxiv.org/pdf/math.GT/0309136", "math/0309136"),
        ("https://arxiv.org/pdf/0704.0001", "0704.0001"),
        ("https://arxiv.org/abs/2401.00001", None),
        ("https://arxiv.org/pdf/", None),
        ("https://arxiv.org/pdf/2413.00001", None),
        ("https://arxiv.org/pdf/2401.00001/other", None),
        ("https://arxiv.org.example/pdf/2401.00001", None),
        ("https://notarxiv.org/pdf/2401.00001", None),
        ("https://arxiv.org@site.example/pdf/2401.00001", None),
        ("ftp://arxiv.org/pdf/2401.00001", None),
        ("https://[broken/pdf/2401.00001", None),
        ("", None),
    ],
)
def test_pdf_links_are_told_from_others(link, arxiv_id):
    assert ArxivTool().is_arxiv_pdf_link(link) is (arxiv_id is not None)
    assert ArxivTool.get_arxiv_id_from_pdf_link(link) == arxiv_id


async def test_a_paper_comes_with_all_its_fields(tool):
    """Every field of the answer is there, dates as ISO text."""
    assert await tool.search_arxiv_by_id("2401.00001") == {
        "arxiv_id": "2401.00001",
        "version": 3,
        "entry_id": "http://arxiv.org/abs/2401.00001v3",
        "title": "Finding Rivers, Revisited",
        "authors": ["Ada Example", "Bo Sample"],
        "summary": "What it is about.",
        "published": "2024-01-01T12:00:00+00:00",
        "updated": "2024-01-03T12:00:00+00:00",
        "primary_category": "cs.IR",
        "categories": ["cs.IR", "cs.CL"],
        "comment": "12 pages",
        "journal_ref": None,
        "doi": None,
        "pdf_url": "http://arxiv.org/pdf/2401.00001v3",
        "links": [
            "http://arxiv.org/abs/2401.00001v3",
            "http://arxiv.org/pdf/2401.00001v3",
        ],
    }


@pytest.mark.parametrize(
    ("spelling", "entry"),
    [
        ("arXiv:2401.00001", "2401.00001v3"),
        ("arxiv: 2401.00001v1 ", "2401.00001v1"),
        ("https://arxiv.org/abs/2401.00001v2", "2401.00001v2"),
        ("hep-th/9901001", "hep-th/9901001v1"),
        ("https://arxiv.org/pdf/hep-th/9901001.pdf", "hep-th/9901001v1"),
    ],
)
async def test_identifiers_in_every_spelling(tool, spelling, entry):
    paper = await tool.search_arxiv_by_id(spelling)
    assert paper["entry_id"] == f"http://arxiv.org/abs/{entry}"


@pytest.mark.parametrize("missing", ["2401.99999", "2401.00001v9", "not an id", "", "2413.00001"])
async def test_an_unknown_identifier_is_no_paper(tool, missing):
    """Absence is normal and is ``None``."""
    assert await tool.search_arxiv_by_id(missing) is None


@pytest.mark.parametrize(
    ("title", "arxiv_id"),
    [
        ("Finding Rivers, Revisited", "2401.00001"),
        ("  finding rivers   REVISITED. ", "2401.00001"),
        ("Finding Rivers, Revisited: A Survey", "2401.00002"),
        (
            "Strings & \N{GREEK SMALL LETTER ALPHA}-Corrections in Gödel Space",
            "hep-th/9901001",
        ),
        (r"Strings and $\alpha$-Corrections in G\"odel Space", None),
        ("Mind-Bending: Models 1.5", "2402.12345"),
        ("Mind Bending Models 15", "2402.12346"),
        ("Finding", None),
        ("Revisited, Finding Rivers", None),
        ("?!", None),
        ("", None),
    ],
)
async def test_a_title_finds_its_paper_only(tool, title, arxiv_id):
    """The title must be the same but for spelling; the first hit alone is not good enough."""
    paper = await tool.search_arxiv_by_title(title)
    assert (paper and paper["arxiv_id"]) == arxiv_id


@pytest.mark.parametrize(
    "fault",
    [
        Answer(status=503),
        Answer(status=429),
        Answer(b"<html><body>Down for maintenance</body></html>"),
        Answer(b""),
        Answer(feed([]).body[:-40]),
        feed([], total=3),
        feed(["<entry><id>http://arxiv.org/api/errors#busy</id><title>Error</title></entry>"]),
        Answer(feed([]).body, promised_bytes=10_000),
        Answer(drops=True),
    ],
)
async def test_a_failing_service_is_never_an_absent_paper(tool, arxiv, fault):
    arxiv.faults[:] = [fault] * 2
    assert (await tool.search_arxiv_by_id("2401.00001"))["version"] == 3
    arxiv.faults[:] = [fault] * 4
    with pytest.raises(ToolError, match=r"arxiv (failed|did not answer).*2401\.00001") as caught:
        await tool.search_arxiv_by_id("2401.00001")
    assert "\n" not in str(caught.value)


async def test_the_page_size_is_what_is_asked_for(web):
    """A tool looks at as many matches as it was told to."""
    tool = ArxivTool(page_size=7, api_url=f"{web.url}/api/query", request_interval_s=0)
    await tool.search_arxiv_by_title("Finding Rivers, Revisited")
    assert web.requests[0].query["max_results"] == "7"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Mind2Web-2: Evaluating  Search", "mind2web 2 evaluating\nsearch"),
        (
            r"On $\alpha$-divergence in $\mathcal{O}(n\log n)$",
            "On \N{GREEK SMALL LETTER ALPHA}-Divergence in O(n log n)",
        ),
        (r"G\"odel, Poincar\'e, {\v S}koda", "G\u00f6del, Poincar\u00e9, \u0160koda"),
        (r"\textbf{Bold} \emph{claims}", "Bold claims"),
        (r"$\varepsilon$-nets", "\N{GREEK SMALL LETTER EPSILON} nets"),
        ("Pre-training", "Pretraining"),
    ],
)
def test_spellings_of_one_title_agree(one, other):
    """Case, white space, punctuation, accents and LaTeX make no difference."""
    assert normalise_title(one) == normalise_title(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Gemini 1.5", "Gemini 15"),
        ("C++ explained", "C explained"),
        ("A survey", "A survey II"),
        ("Llama 2 7B", "Llama 27B"),
    ],
)
def test_different_titles_differ(one, other):
    assert normalise_title(one) != normalise_title(other)
