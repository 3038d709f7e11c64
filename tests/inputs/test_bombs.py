"""Small inputs that unfold to a lot, or take a parser very long: bounded memory, bounded time."""

import pytest
from inputs.hostile_files import HOSTILE_PIECES, IMAGE_BOMBS, PDF_BOMBS, repeated
from inputs.limited import outcome_within

from mind2web2.capture.page.documents import FetchedDocument, charset_of, file_name_of
from mind2web2.capture.pdf import RenderSettings, render_pages
from mind2web2.errors import DocumentError, WorkerError
from mind2web2.llm_client.chat import Completion
from mind2web2.llm_client.structured_output import (
    InvalidOutputError,
    json_text,
    read_reply,
)
from mind2web2.pages.citations import cited_urls
from mind2web2.urls.markdown import URLs, regex_find_urls
from mind2web2.urls.parts import (
    lookup_key,
    normalize_url_for_browser,
    normalize_url_simple,
    storage_key,
)
from mind2web2.utils.images import cut_screenshot, to_jpeg
from mind2web2.utils.misc import normalize_url_markdown
from mind2web2.utils.workers import run_in_worker

# The module itself takes some hundred; an answer or a URL comes to megabytes.
MEMORY_MB = 1500
# Processor time for all of a test's inputs together; a fault would take hours.
SECONDS = 60
FEW_PAGES = RenderSettings(max_image_pages=1, max_text_pages=3, dpi=36)


@pytest.mark.parametrize("name", IMAGE_BOMBS)
async def test_an_image_bomb_is_refused_or_read(name):
    image = IMAGE_BOMBS[name]()
    for read in (to_jpeg, cut_screenshot):
        try:
            await run_in_worker(read, image, timeout_s=60.0)
        except WorkerError:
            raise
        except DocumentError as error:
            assert "not decoded" in str(error) or "damaged" in str(error)


@pytest.mark.parametrize("name", PDF_BOMBS)
async def test_a_pdf_bomb_costs_a_worker_at_most(name):
    try:
        rendered = await run_in_worker(render_pages, PDF_BOMBS[name](), FEW_PAGES, timeout_s=1.5)
    except DocumentError as error:
        assert len(str(error).splitlines()) == 1
    else:
        assert len(rendered.images) <= 1
    after = await run_in_worker(
        render_pages, PDF_BOMBS["page of no size"](), FEW_PAGES, timeout_s=60.0
    )
    assert after.page_count == 1


def sizes_of_citations(chars):
    """Find the citations of answers that say one thing again and again."""
    return [len(cited_urls(repeated(piece, chars))) for piece in HOSTILE_PIECES]


def test_answers_that_repeat_themselves_are_read_in_time():
    found = outcome_within(MEMORY_MB, SECONDS, sizes_of_citations, 8_000)
    assert len(found) == len(HOSTILE_PIECES)


def sizes_of_long_answers():
    """Find the citations of long answers."""
    nested = "".join(f"{'  ' * (level % 500)}- a\n" for level in range(1000))
    return [
        len(cited_urls(text))
        for text in (nested, repeated("[", 100_000), repeated("//a.com/", 50_000))
    ]


def test_an_answer_of_many_brackets_is_read():
    """Nested lists as well, and addresses without a space, where time once grew with the square."""
    assert outcome_within(MEMORY_MB, SECONDS, sizes_of_long_answers) == [0, 0, 0]


def keys_of_long_urls():
    """Do to very long URLs what is done to URLs."""
    for tail in ("%C3", "?a=b&"):
        url = f"http://a.example/{repeated(tail, 2_000_000)}"
        for function in (
            lookup_key,
            storage_key,
            normalize_url_simple,
            normalize_url_for_browser,
        ):
            function(url)
        regex_find_urls(url[:500_000])
        normalize_url_markdown(f"[{url[:100]}{repeated(' ', 300_000)}x")
    return lookup_key("http://" + repeated("a.", 2_000_000))


def test_a_url_of_megabytes_is_read():
    """No host is as long as that, while paths are."""
    assert outcome_within(MEMORY_MB, SECONDS, keys_of_long_urls) is None


def kinds_of_documents():
    """Tell the kind of responses with endless headers or a beginning like HTML's."""
    comments = FetchedDocument("http://a.example", "", b"<!-- -->" * 500, "")
    header = "text/plain" + repeated("; a", 500_000)
    text = FetchedDocument(
        "http://a.example",
        "text/plain; charset=punycode",
        b"a" * 1_000_000 + b"-b",
        "",
    )
    return [comments.kind(), charset_of(header), file_name_of(header), len(text.text())]


def test_headers_and_comments_without_end_are_read():
    """A response that opens comment after comment took longer than the universe will last."""
    kind, charset, file_name, chars = outcome_within(MEMORY_MB, 30, kinds_of_documents)
    assert (kind, charset, file_name, chars) == ("html", None, "", 1_000_002)


def text_of_large_html():
    """Read 100 MB of HTML that a server declares as text."""
    body = b"<!doctype html>" + b"<p>line</p>" * (100 * 1024**2 // 11)
    document = FetchedDocument("http://a.example", "text/plain", body, "")
    return document.kind(), len(document.text()) == len(body)


def test_large_html_is_read_within_a_few_times_its_size():
    assert outcome_within(1000, SECONDS, text_of_large_html) == ("text", True)


def outcomes_of_replies():
    """Read replies of models that have lost their way."""
    nested = '{"urls":' * 100_000
    many = '{"urls": [' + ",".join(["1"] * 300_000) + "]}"
    twice = (
        "{" + ",".join(f'"k{number}": 1' for number in range(100_000)) + ', "urls": [], "k7": 2}'
    )
    problems = []
    for text in (nested, many, twice, repeated("[", 2_000_000)):
        try:
            read_reply(Completion(text=text), URLs)
        except InvalidOutputError as error:
            problems.append(len(str(error)) < 5000)
    return problems, [
        len(json_text(repeated(piece, 1_000_000))) > 0 for piece in ("</think>x", "```a\n", "`")
    ]


def test_replies_that_have_no_end_are_sent_back():
    assert outcome_within(MEMORY_MB, SECONDS, outcomes_of_replies) == (
        [True] * 4,
        [True] * 3,
    )


def decoded_in_this_process(image):
    """Decode an image, which asks for gigabytes."""
    return to_jpeg(image)


def test_a_50000_by_50000_image_is_not_even_begun():
    """Far less memory than its pixels would need is enough to refuse it."""
    outcome = outcome_within(400, 30, decoded_in_this_process, IMAGE_BOMBS["50,000 x 50,000 PNG"]())
    assert isinstance(outcome, DocumentError)
