"""Pages in the viewer: list, decisions, uploads, captures, browser extension."""

import asyncio
import base64
import json
import shutil
from copy import copy
from urllib.parse import quote, urlsplit

import pytest
from fixtures.pdf_files import pdf
from inputs.hostile_files import small_image
from patchright.async_api import expect
from servers.local_http import Answer, LocalHttp
from viewer.conftest import ask, served
from viewer.made_results import URL, Results, leaf, result

from mind2web2.capture.models import (
    CapturedPage,
    CaptureRecord,
    CaptureSettings,
    NetworkSettings,
    Trouble,
)
from mind2web2.pages.cache import CacheFileSys
from mind2web2.pages.cited_pages import AgentCache, TaskCitations
from mind2web2.results.claim_facts import page_checks
from mind2web2.results.freshness import FilesNow
from mind2web2.results.stored_results import latest_result
from mind2web2.viewer.catalog import Catalog
from mind2web2.viewer.page_review import (
    KEPT_NAME,
    REVIEWS_NAME,
    PageReview,
    PageRoutes,
    Reviewer,
)
from mind2web2.viewer.stored_pages import PageKey

AGENT, TASK = "bot", "lake"
FAILED, SUSPECT = "https://lake.example/gone", "https://lake.example/wall"
LAKE = b"<h1>The lake</h1>" + b"<p>It is 88 metres deep.</p>" * 9
ORIGIN = {"origin": "chrome-extension://abcdefgh", "content-type": "application/json"}


def record(url, **fields):
    """Return the record of a capture."""
    return CaptureRecord(
        requested_url=url,
        final_url=url,
        captured_at="2026-11-01T10:00:00+00:00",
        **fields,
    )


@pytest.fixture
def results(tmp_path):
    """Return one answer, and three pages: one failed, one suspect, one sound."""
    made = Results(tmp_path)
    made.add(result(AGENT, "answer_1", [leaf("deep", "The lake is deep.")]), TASK)
    made.summarise(AGENT)
    cache = cache_of(made)
    wall = record(SUSPECT, kind="web", troubles=(Trouble(kind="login_wall", detail="a form"),))
    cache.put_capture(CapturedPage(wall, text="Please log in."))
    cache.put_capture(CapturedPage(record(FAILED, kind=None, failure="HTTP 404")))
    cache.put_capture(CapturedPage(record(URL, kind="web"), text="The lake is deep."))
    return made


def cache_of(results):
    """Return the cache as it is on disk."""
    return CacheFileSys(results.paths.cache_root / AGENT / TASK)


@pytest.fixture
def address(results):
    """Yield the address of a viewer whose reviewer is ann."""
    capture = CaptureSettings(network=NetworkSettings(allow_private_network=True))
    catalog = Catalog(results.paths, [AGENT])
    routes = PageRoutes(PageReview(catalog, Reviewer("ann", capture)), [AGENT]).routes()
    with served(catalog, {"pages": routes}) as address:
        yield address


def post(address, path, body, headers):
    """Send a request and return status, JSON and answer."""
    status, text, answer = ask(address, path, headers, "POST" if body is not None else "GET", body)
    return status, json.loads(text or "null"), answer


async def test_pages_are_gone_through_with_keys(page, results, address):
    """Failed and suspect first; each decision has its author, and changes what results rest on."""
    await page.goto(address)
    await page.get_by_role("link", name="Pages").click()
    rows = page.locator(".pages .page")
    await expect(rows).to_have_count(3)
    await expect(rows.nth(0)).to_contain_text("HTTP 404")
    await expect(rows.nth(1)).to_contain_text("login wall")
    digest = cache_of(results).digest(SUSPECT)
    await page.keyboard.press("j")
    await expect(rows.nth(1)).to_have_class(r"page suspect current")
    await page.keyboard.press("r")
    await expect(page.locator(".message")).to_contain_text("done")
    kept = cache_of(results).capture_record(SUSPECT)
    assert (kept.troubles, kept.reviewed.decision, kept.reviewed.by) == (
        (),
        "right",
        "ann",
    )
    assert cache_of(results).digest(SUSPECT) != digest
    # At once: a key acts on the page that the key before led to.
    await page.keyboard.press("j")
    await page.keyboard.press("w")
    await expect(rows.nth(2)).to_have_class(r"page failed current")
    assert cache_of(results).has(URL) is None
    assert "ann marked the stored page as wrong" in cache_of(results).capture_record(URL).failure
    await page.keyboard.press("x")
    await expect(rows.nth(2)).to_contain_text("not captured yet")
    # The last one, then the one before it, and the one on the other page; back to how it was.
    await page.keyboard.press("z")
    await expect(rows.nth(2)).to_contain_text("ann marked the stored page as wrong")
    await page.keyboard.press("z")
    await expect(page.locator(".message")).to_contain_text('before "wrong"')
    assert cache_of(results).get_web(URL)[0] == "The lake is deep."
    await page.keyboard.press("z")
    await expect(rows.nth(1)).to_have_class(r"page suspect current")
    assert cache_of(results).digest(SUSPECT) == digest
    await page.keyboard.press("z")
    await expect(page.locator(".message.error")).to_contain_text("no decision")
    made = (
        (results.paths.cache_root / AGENT / TASK / REVIEWS_NAME)
        .read_text(encoding="utf-8")
        .splitlines()
    )
    decisions = [(json.loads(line)["decision"], json.loads(line)["by"]) for line in made]
    assert decisions == [
        (name, "ann") for name in ("right", "wrong", "remove", "undo", "undo", "undo")
    ]
    assert [*(results.paths.cache_root / AGENT / TASK / KEPT_NAME).iterdir()] == []
    # A decision that the button undid is not undone by the key once more.
    await page.keyboard.press("j")
    await page.keyboard.press("w")
    await expect(page.locator(".message")).to_contain_text("Marking as wrong: done")
    await page.get_by_role("button", name="Undo").click()
    await expect(page.locator(".message")).to_contain_text('before "wrong"')
    await page.keyboard.press("k")
    await page.keyboard.press("z")
    await expect(page.locator(".message.error")).to_contain_text("no decision")
    await expect(rows.nth(1)).to_have_class(r"page suspect current")


async def test_long_lists_are_shown_around_the_chosen_page(page, results, address):
    """A browser is slow with thousands of rows; keys go on beyond those that are shown."""
    urls = [f"https://lake.example/{number:04}" for number in range(700)]
    AgentCache(results.paths.cache_root / AGENT).list_citations(
        TaskCitations(TASK, {"answer_1.md": [*urls, URL, SUSPECT, FAILED]})
    )
    await page.goto(address)
    await page.goto(
        f"{address.partition('?')[0]}#/pages/{AGENT}?task={TASK}&url={quote(urls[450], safe='')}"
    )
    current = page.locator(".page.current")
    await expect(current).to_contain_text("/0450")
    await expect(page.locator(".pages .page")).to_have_count(300)
    await page.keyboard.press("j")
    await expect(current).to_contain_text("/0451")
    await expect(current).to_be_in_viewport()


async def test_files_are_uploaded_in_a_pages_place(page, results, address):
    """A text, a picture or a PDF; something else is refused in one line."""
    await page.goto(address)
    await page.get_by_role("link", name="Pages").click()
    upload, message = page.locator("input[type=file]"), page.locator(".message")
    await upload.set_input_files(
        {"name": "page.txt", "mimeType": "text/plain", "buffer": b"The lake dried up."}
    )
    await expect(message).to_contain_text("done")
    assert cache_of(results).get_web(FAILED)[0] == "The lake dried up."
    await upload.set_input_files(
        {"name": "page.pdf", "mimeType": "application/pdf", "buffer": pdf(["Deep"])}
    )
    await expect(page.get_by_role("tab", name="Pages")).to_be_visible()
    assert cache_of(results).has(FAILED) == "pdf"
    assert cache_of(results).capture_record(FAILED).reviewed.decision == "uploaded"
    await upload.set_input_files(
        {"name": "page.zip", "mimeType": "application/zip", "buffer": b"PK"}
    )
    await expect(message).to_contain_text("choose a PDF")


def test_every_change_of_a_page_can_be_undone(results):
    """Undoing restores the same files after a page, a failure, or nothing."""
    review = PageReview(Catalog(results.paths, [AGENT]), Reviewer("ann", CaptureSettings()))
    old, new = "https://lake.example/old", "https://lake.example/never-seen"
    cache_of(results).put_web(old, "Stored without a record.", small_image("JPEG"))
    for url in (URL, FAILED, old, new):
        key = PageKey(AGENT, TASK, url)
        before = page_files(results)
        review.upload(key, pdf=pdf(["Deep"]))
        review.upload(key, text="The lake dried up.", screenshot=small_image("PNG"))
        review.decide(key, "right")
        review.decide(key, "wrong")
        for _ in range(4):
            assert page_files(results) != before
            review.undo(key)
        assert page_files(results) == before


def test_undo_loses_no_page_that_was_captured_since(results):
    """Another command stored it after the decision: it comes back as well."""
    review = PageReview(Catalog(results.paths, [AGENT]), Reviewer("ann", CaptureSettings()))
    key = PageKey(AGENT, TASK, URL)
    review.decide(key, "wrong")
    cache_of(results).put_web(URL, "The lake, captured again.", small_image("JPEG"))
    since = page_files(results)
    assert review.undo(key)["undo"] == "undo of wrong"
    assert cache_of(results).get_web(URL)[0] == "The lake is deep."
    assert review.undo(key)["undo"] is None
    assert page_files(results) == since


def page_files(results):
    """Return the contents of all files of pages, and which pages are listed."""
    folder = results.paths.cache_root / AGENT / TASK
    files = {path.name: path.read_bytes() for path in folder.glob("[0-9a-f]*.*")}
    return files, cache_of(results).get_all_urls()


def test_interrupted_upload_leaves_the_page(results, monkeypatch):
    """The new page is on the disk before the old one goes."""
    review = PageReview(Catalog(results.paths, [AGENT]), Reviewer("ann", CaptureSettings()))

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("mind2web2.pages.cache.replace_page", killed)
    with pytest.raises(KeyboardInterrupt):
        review.upload(PageKey(AGENT, TASK, URL), text="The lake dried up.")
    assert cache_of(results).get_web(URL)[0] == "The lake is deep."


def test_only_changes_of_what_a_judge_is_shown_make_results_stale(example_paths, tmp_path):
    """That a sound page looks right changes nothing; that it is wrong, or another one, does."""
    paths = copy(example_paths)
    paths.cache_root = shutil.copytree(example_paths.cache_root, tmp_path / "cache")
    task = "museum_saturday"
    result = latest_result(
        paths.eval_results_root / "example" / task / "answer_1" / "results"
    ).content
    check = next(check for leaf in result.leaves() for check in page_checks(leaf))
    review = PageReview(Catalog(paths), Reviewer("ann", CaptureSettings()))
    key = PageKey("example", task, check.url)

    def is_stale():
        files = FilesNow(paths, "example")
        changes = files.changes_since(task, "answer_1.md", result.provenance)
        return any(key.url in change for change in changes)

    assert not is_stale()
    review.decide(key, "right")
    assert not is_stale()
    review.decide(key, "wrong")
    assert is_stale()
    review.undo(key)
    assert not is_stale()
    review.upload(key, text="The museum is closed on Saturdays.")
    assert is_stale()


MHTML = b"""From: <Saved by Blink>
Snapshot-Content-Location: https://lake.example/gone
Date: Sat, 21 Nov 2026 10:00:00 -0000
MIME-Version: 1.0
Content-Type: multipart/related; type="text/html"; boundary="b"

--b
Content-Type: text/html
Content-Location: https://lake.example/gone

<h1>The lake</h1><p>It is 88 metres deep, as the saved page says in its only paragraph.</p>
--b--
""".replace(b"\n", b"\r\n")


async def test_saved_page_is_rendered_and_stored(page, results, address):
    """An MHTML file, uploaded in the viewer or by the extension, without a network."""
    await page.goto(address)
    await page.get_by_role("link", name="Pages").click()
    file = {"name": "page.mhtml", "mimeType": "multipart/related", "buffer": MHTML}
    await page.locator("input[type=file]").set_input_files(file)
    await expect(page.locator(".page-text")).to_contain_text("88 metres", timeout=60_000)
    assert cache_of(results).capture_record(FAILED).reviewed.decision == "uploaded"
    path = f"/api/upload-mhtml/{TASK}?url={quote(SUSPECT, safe='')}"
    headers = {**ORIGIN, "content-type": "multipart/related"}
    await asyncio.to_thread(choose, address, SUSPECT)
    status, found, _ = await asyncio.to_thread(post, address, path, MHTML, headers)
    assert (status, found["success"]) == (200, True)
    assert "88 metres" in cache_of(results).get_web(SUSPECT)[0]


async def test_page_is_captured_again(page, results, address):
    """By a real browser; a capture that fails says why and leaves the stored page."""
    with LocalHttp(lambda _: Answer(LAKE, headers={"content-type": "text/html"})) as site:
        url = f"{site.url}/lake"
        cache_of(results).put_capture(CapturedPage(record(url, kind=None, failure="timeout")))
        await page.goto(address)
        await page.goto(
            f"{address.partition('?')[0]}#/pages/{AGENT}?task={TASK}&url={quote(url, safe='')}"
        )
        await page.get_by_role("button", name="Capture again").click()
        await expect(page.locator(".page-text")).to_contain_text("88 metres", timeout=60_000)
    assert cache_of(results).has(url) == "web"
    await page.get_by_role("button", name="Capture again").click()
    await expect(page.locator(".message")).to_contain_text("not captured", timeout=60_000)
    assert cache_of(results).has(url) == "web"


def session(address):
    """Return the headers of the browser that shows the viewer."""
    port, token = urlsplit(address).port, address.partition("token=")[2]
    return {
        "cookie": f"mind2web2_session_{port}={token}",
        "content-type": "application/json",
    }


def choose(address, url=FAILED):
    """Press the button for the extension beside a page."""
    target = {"task_id": TASK, "url": url, "agent": AGENT}
    assert post(address, "/api/capture/target", json.dumps(target), session(address))[0] == 200
    return {"task_id": TASK, "url": url}


def test_extension_repairs_a_page(results, address):
    """The extension sends without a cookie, from its own origin, once for each press."""
    target = choose(address)
    status, shown, answer = post(address, "/api/capture/target", None, {"origin": ORIGIN["origin"]})
    assert (status, shown["url"], shown["task_id"]) == (200, FAILED, TASK)
    assert answer.getheader("access-control-allow-origin") == ORIGIN["origin"]
    picture = base64.b64encode(small_image("PNG")).decode()
    sent = {**target, "text": "The lake is back.", "screenshot_base64": picture}
    sent["actual_url"] = f"{FAILED}/moved"
    assert post(address, "/api/capture", json.dumps(sent), ORIGIN)[1]["success"]
    assert cache_of(results).capture_record(FAILED).final_url == f"{FAILED}/moved"
    text, screenshot = cache_of(results).get_web(FAILED)
    assert text == "The lake is back."
    assert screenshot[:2] == b"\xff\xd8"
    assert post(address, "/api/capture", json.dumps(sent), ORIGIN)[0] == 409
    choose(address)
    path = f"/api/upload-pdf/{TASK}?url={quote(FAILED, safe='')}"
    form = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.pdf"\r\n\r\n'
    form += pdf(["Deep"]) + b"\r\n--x--\r\n"
    headers = {**ORIGIN, "content-type": "multipart/form-data; boundary=x"}
    assert post(address, path, form, headers)[1]["success"]
    assert cache_of(results).has(FAILED) == "pdf"


@pytest.mark.parametrize("chosen", [None, SUSPECT, FAILED])
def test_a_page_that_nobody_chose_stays(results, address, chosen):
    """Any program of this machine can send what the extension sends, and choose nothing."""
    target = {"task_id": TASK, "url": URL}
    assert ask(address, "/api/capture/target", ORIGIN, "POST", json.dumps(target))[0] == 403
    if chosen is not None:
        choose(address, chosen)
    sent = {**target, "text": "The lake is a lie."}
    status, found, _ = post(address, "/api/capture", json.dumps(sent), ORIGIN)
    assert (status, "press For the extension" in found["error"]) == (409, True)
    path = f"/api/upload-pdf/{TASK}?url={quote(URL, safe='')}"
    assert post(address, path, pdf(["A lie"]), ORIGIN)[0] == 409
    assert cache_of(results).get_web(URL)[0] == "The lake is deep."


def test_a_choice_expires(results):
    """After ten minutes the button is pressed again."""
    seconds = [0.0]
    catalog = Catalog(results.paths, [AGENT])
    review = PageReview(catalog, Reviewer("ann", CaptureSettings()))
    routes = PageRoutes(review, [AGENT], clock=lambda: seconds[0]).routes()
    with served(catalog, {"pages": routes}) as address:
        sent = {**choose(address), "text": "The lake is back."}
        seconds[0] = 601.0
        assert post(address, "/api/capture/target", None, {"origin": ORIGIN["origin"]})[1] is None
        assert post(address, "/api/capture", json.dumps(sent), ORIGIN)[0] == 409
        choose(address)
        assert post(address, "/api/capture", json.dumps(sent), ORIGIN)[0] == 200


@pytest.mark.parametrize("origin", ["http://attacker.example", "https://lake.example", "null"])
def test_other_sites_repair_nothing(results, address, origin):
    """Though those routes ask for no cookie."""
    sent = json.dumps({"task_id": TASK, "url": URL, "text": "The lake is a lie."})
    assert ask(address, "/api/capture", {"origin": origin}, "POST", sent)[0] == 403
    assert cache_of(results).get_web(URL)[0] == "The lake is deep."


@pytest.mark.parametrize(
    "sent",
    [
        "",
        "{}",
        "[1]",
        '{"task_id": "..", "url": "x"}',
        '{"task_id": "lake", "url": "x", "screenshot_base64": "%%"}',
    ],
)
def test_malformed_requests_are_refused_in_a_line(results, address, sent):
    status, found, _ = post(address, "/api/capture", sent, ORIGIN)
    assert status in (404, 409)
    assert found["error"].count("\n") == 0
    assert sorted(cache_of(results).get_all_urls()) == sorted([URL, SUSPECT])
