"""Difficult pages and servers: walls, downloads, endless frames, dead servers."""

from pathlib import Path

import pytest
import pytest_asyncio
from capture.shared_browser import capturing
from servers.toothed_site import Reply, SiteServer

from mind2web2.capture.models import NetworkSettings
from mind2web2.capture.page.text import read_text

HOST = "www.difficult.example"
PROSE = "The weir at Brim is open from May to September and closed in winter. " * 3
DOWNLOAD = {"Content-Disposition": "attachment; filename=tides.zip"}


class DifficultSite(SiteServer):
    """Serves replies that are set by path."""

    def __init__(self, root):
        super().__init__(root, more_hosts=(HOST,))
        self.replies = {}

    def reply(self, request):
        """Return the reply for a path, or 404."""
        found = self.replies.get(request.path, Reply(status=404))
        return found(self, request) if callable(found) else found


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A server on loopback."""
    with DifficultSite(Path(tmp_path_factory.mktemp("no-files"))) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def manager(browser, site):
    """Captures of the site's pages."""
    async with capturing(browser, NetworkSettings(host_map=site.host_map)) as manager:
        yield manager


async def captured(manager, site, path, reply):
    """Serve a reply at a path and capture it."""
    site.replies[path] = Reply(reply.encode()) if isinstance(reply, str) else reply
    return await manager.capture(f"https://{HOST}{path}")


BANNER = (
    "<h2>We value your privacy</h2><p>We and our 842 partners store and access information on a "
    "device, such as cookies, and process personal data. You can accept or manage your "
    "choices.</p><button>Manage options</button><button>Accept all</button>"
)
VENDORS = "".join(
    f"<li>Vendor {n} uses cookies with your consent for measurement of ads</li>" for n in range(60)
)
WALLS = {
    "an overlay over nothing": f"<div style='position:fixed;inset:0' class=cookie>{BANNER}</div>",
    "in the page's flow": f"<main><img src=/logo.png alt=Logo width=90 height=30>{BANNER}</main>",
    "with a list of vendors": f"<title>Your privacy</title><main>{BANNER}<ul>{VENDORS}</ul></main>",
    "in a frame": "<iframe src=/consent-frame style='width:100%;height:800px' "
    "title='Privacy'></iframe>",
    "beside a footer": f"<main>{BANNER}</main><footer>© Brim News. Imprint. Privacy policy. "
    "Contact</footer>",
    "in German": (
        "<h1>Datenschutz</h1><p>Wir und unsere Partner verwenden Cookies, um Inhalte zu "
        "personalisieren. Mit Klick auf „Alle akzeptieren“ willigen Sie "
        "ein.</p><button>Einstellungen</button><button>Alle akzeptieren</button>"
    ),
    "in French": (
        "<h1>Votre vie privée</h1><p>Nous et nos partenaires utilisons des cookies pour "
        "personnaliser le contenu.</p><button>Paramétrer</button><button>Tout accepter</button>"
    ),
    "in Japanese": (
        "<h1>プライバシー</h1><p>当サイトではクッキーを使用しています。同意しますか。</p><button>同意する</button>"
    ),
    "without a title": "<p>This site uses cookies for analytics.</p><button>Accept</button>",
}


@pytest.mark.parametrize("name", WALLS)
async def test_a_page_that_is_only_a_consent_wall_is_suspect(manager, site, name):
    site.replies["/consent-frame"] = Reply(f"<title>Consent</title>{BANNER}".encode())
    path = f"/wall/{list(WALLS).index(name)}"
    page = await captured(manager, site, path, f"<!doctype html><body>{WALLS[name]}</body>")
    assert "consent_wall" in {trouble.kind for trouble in page.record.troubles}


FIXED_BANNER = f"<div style='position:fixed;bottom:0' class=cookie>{BANNER}</div>"
CONTENT = {
    "an article": f"<h1>The weir</h1><p>{PROSE}</p>{FIXED_BANNER}",
    "one sentence": "<p>The weir is open from May.</p><p>This site uses "
    "cookies.</p><button>Accept</button>",
}


@pytest.mark.parametrize("name", CONTENT)
async def test_a_page_with_a_consent_banner_is_not_suspect(manager, site, name):
    page = await captured(manager, site, f"/banner/{list(CONTENT).index(name)}", CONTENT[name])
    assert (page.record.troubles, "open from May" in page.text) == ((), True)


FORM = "<form id=f method={} action={}><input name=day value=3></form><script>f.submit()</script>"
STARTS = {
    "a script while the page is parsed": "<script>location.href = '/tides.zip'</script>",
    "a script": "<script>onload = () => { location.href = '/tides.zip' }</script>",
    "a refresh": "<meta http-equiv=refresh content='0;url=/tides.zip'>",
    "a refresh to a PDF": "<meta http-equiv=refresh content='0;url=/tides.pdf'>",
    "a frame": "<iframe hidden src=/tides.zip></iframe>",
    "a link": "<a id=a href=/tides.zip download></a><script>a.click()</script>",
    "a script, a file of HTML": "<script>onload = () => { location.href = '/saved.html' }</script>",
    "a form while the page is parsed": f"{FORM.format('get', '/tides.zip')}",
    "a posted form while the page is parsed": f"{FORM.format('post', '/tides.zip')}",
    "a form that writes a mail": f"{FORM.format('post', 'mailto:weir@brim.example')}",
    "a mail": "<script>location.href = 'mailto:weir@brim.example'</script>",
    "a mail at load": "<script>onload = () => { location.href = 'mailto:weir@brim.example' "
    "}</script>",
    "an app": "<script>location.replace('brim-app://open')</script>",
    "a refresh to an app": "<meta http-equiv=refresh content='0;url=brim-app://open'>",
}


@pytest.mark.parametrize("name", STARTS)
async def test_a_page_that_starts_a_download_keeps_its_text(manager, site, name):
    """The file is not what the page's address stands for."""
    site.replies["/tides.zip"] = Reply(
        b"PK\x03\x04" + bytes(100), "application/zip", headers=DOWNLOAD
    )
    site.replies["/tides.pdf"] = Reply(
        b"%PDF-1.4\n" + bytes(100), "application/pdf", headers=DOWNLOAD
    )
    site.replies["/saved.html"] = Reply(b"<p>The saved file</p>", headers=DOWNLOAD)
    html = f"<title>Tides</title>{STARTS[name]}<p>Your download starts in a moment. {PROSE}</p>"
    page = await captured(manager, site, f"/start/{list(STARTS).index(name)}", html)
    assert (page.record.kind, page.record.failure) == ("web", None)
    assert "open from May" in page.text


BRIEF = {
    "a sentence": "<p>The tower is 41 m tall.</p>",
    "a text that comes after the download began": (
        "<p id=p></p><script>fetch('/height').then((r) => r.text()).then((t) => { p.innerText = t "
        "})</script>"
    ),
}


@pytest.mark.parametrize("name", BRIEF)
async def test_a_brief_page_that_starts_a_download_keeps_its_text(manager, site, name):
    """A page needs no length to stay before a file that is offered for saving."""
    site.replies["/tides.zip"] = Reply(
        b"PK\x03\x04" + bytes(100), "application/zip", headers=DOWNLOAD
    )
    site.replies["/height"] = lambda site, _: site.pause(1) or Reply(b"The tower is 41 m tall.")
    html = f"<title>Tower</title>{BRIEF[name]}{STARTS['a script']}"
    page = await captured(manager, site, f"/brief/{list(BRIEF).index(name)}", html)
    assert (page.record.failure, "41 m" in (page.text or "")) == (None, True)


async def test_a_page_cut_off_by_its_download_is_read_whole(manager, site):
    """The page is loaded once more, and files are not requested again."""
    site.replies["/cut.zip"] = Reply(
        b"PK\x03\x04" + bytes(100), "application/zip", headers=DOWNLOAD
    )
    site.replies["/hop"] = Reply(b"<script>location.replace('/end')</script>")
    site.replies["/end"] = Reply(b"<p>The frame's last document.</p>")
    push = (
        "onload = () => { history.pushState(0, '', '/cut/view'); at.innerText = location.pathname }"
    )
    html = (
        f"<title>Tides</title><p>{PROSE}</p><script>location.href = '/cut.zip'</script>"
        f"<p>After the script.</p><p id=at></p><iframe src=/hop></iframe><script>{push}</script>"
    )
    page = await captured(manager, site, "/cut", html)
    assert (page.record.kind, page.record.failure) == ("web", None)
    for part in ("After the script.", "/cut/view", "The frame's last document."):
        assert part in page.text
    assert (site.hits("/cut"), site.hits("/cut.zip")) == (2, 1)


STEPS = {
    "a script while the page is parsed": "<script>location.href = '/tides.txt'</script>",
    "a script": "<script>onload = () => { location.href = '/tides.txt' }</script>",
    "a refresh": "<meta http-equiv=refresh content='0;url=/tides.txt'>",
}


@pytest.mark.parametrize("name", STEPS)
async def test_a_step_on_the_way_to_a_file_yields_the_file(manager, site, name):
    """A page that says nothing but that it redirects gives way.

    It is loaded again only where it was cut.
    """
    site.replies["/tides.txt"] = Reply(b"High tide at 7", "text/plain")
    path = f"/step/{list(STEPS).index(name)}"
    page = await captured(manager, site, path, f"{STEPS[name]}<p>Redirecting...</p>")
    assert page.text == "High tide at 7"
    assert site.hits(path) == (2 if "parsed" in name else 1)


def _frame_in_itself(_site, request):
    number = int(request.query.get("n", 0))
    inner = f"<iframe src='{request.path}?n={number + 1}' width=500 height=300></iframe>"
    return Reply(f"<p>Level {number}. {PROSE}</p>{inner if number < 2000 else ''}".encode())


@pytest.mark.parametrize("query", ["", "?n=0"])
async def test_a_frame_that_frames_itself_costs_its_own_frame(manager, site, query):
    """The page around it is read in full, and the record says that frames were left out."""
    site.replies["/nested"] = _frame_in_itself
    frame = f"<iframe src='/nested{query}' width=600 height=300></iframe>"
    html = f"<h1>The weir</h1><p>{PROSE}</p>{frame}<p>The end.</p>"
    page = await captured(manager, site, f"/self{len(query)}", html)
    assert page.record.troubles == ()
    assert "The end." in page.text
    assert "Level 0." in page.text
    assert "frames within frames within frames were left out" in page.record.notes


@pytest.mark.long
async def test_a_page_of_a_hundred_frames_is_read_within_the_limits(manager, site):
    """Each frame is read and shown; frames that take too long would cost the screenshot."""
    site.replies |= {f"/part/{n}": Reply(f"<p>Part {n}.</p>".encode()) for n in range(100)}
    frames = "".join(f"<iframe src=/part/{n} width=300 height=60></iframe>" for n in range(100))
    page = await captured(manager, site, "/frames", f"<h1>Parts</h1>{frames}")
    assert [n for n in range(100) if f"Part {n}." not in page.text] == []
    assert page.screenshot is not None


async def test_a_dead_server_is_asked_once(browser, site):
    """A server that takes the connection and is silent gets no second try."""
    site.replies["/silent"] = lambda site, _: site.pause(120)
    async with capturing(
        browser, NetworkSettings(host_map=site.host_map), answer_timeout_s=2.0
    ) as manager:
        page = await manager.capture(f"https://{HOST}/silent")
    assert (page.record.troubles[0].kind, page.record.tries) == ("timeout", 1)
    assert page.record.is_transient


async def test_a_slow_server_is_waited_for_by_the_patient(browser, site):
    """The first result says only that the server was silent; the second try waits longer."""
    site.replies["/slow"] = lambda site, _: site.pause(3) or Reply(PROSE.encode())
    async with capturing(
        browser, NetworkSettings(host_map=site.host_map), answer_timeout_s=1.0
    ) as manager:
        first = await manager.capture(f"https://{HOST}/slow")
        second = await manager.capture(f"https://{HOST}/slow", is_patient=True)
    assert (first.record.kind, first.is_unanswered) == (None, True)
    assert "open from May" in second.text


SPELLINGS = {
    "with a last slash": ("/item/1", "/item/1/"),
    "without": ("/item/2/", "/item/2"),
    "decoded": ("/item%3A3", "/item:3"),
    "with a query": ("/item/4?a=1", "/item/4/"),
}


@pytest.mark.parametrize("name", SPELLINGS)
async def test_a_page_that_the_server_knows_by_another_spelling_is_found(manager, site, name):
    """The cited spelling is opened first, and the other one where it gives 404.

    The record says so.
    """
    cited, known = SPELLINGS[name]
    site.replies[known] = Reply(PROSE.encode())
    page = await manager.capture(f"https://{HOST}{cited}")
    assert (page.record.requested_url, page.record.status) == (
        f"https://{HOST}{cited}",
        200,
    )
    assert ("open from May" in page.text, page.record.troubles) == (True, ())
    assert "gave HTTP 404, and was opened as" in page.record.notes[0]


async def test_a_page_that_is_not_there_stays_the_page_of_the_cited_spelling(manager, site):
    page = await manager.capture(f"https://{HOST}/gone")
    assert (page.record.status, site.hits("/gone"), site.hits("/gone/")) == (404, 1, 1)


CARD = (
    "<style>.f{width:200px;height:80px}.i{position:relative;transform-style:preserve-3d;"
    "height:100%}.f:hover .i{transform:rotateY(180deg)}.s{position:absolute;inset:0;"
    "backface-visibility:hidden}.k{transform:rotateY(180deg)}</style><div class=f><div class=i>"
    "<div class=s>Length</div><div class='s k'>The quay is 640 m long.</div></div></div>"
)


async def test_both_sides_of_a_card_that_turns_under_the_pointer_are_read(manager, site):
    page = await captured(manager, site, "/card", f"<!doctype html>{CARD}")
    assert page.text.split("\n") == ["Length", "The quay is 640 m long."]


async def test_a_broken_compression_is_given_up_at_once(manager, site):
    """Another try would bring the same bytes."""
    reply = Reply(b"\x00not gzip", headers={"Content-Encoding": "gzip"})
    page = await captured(manager, site, "/broken", reply)
    assert page.record.failure == "the server's compression of the page is broken"
    assert (page.record.tries, page.record.is_transient) == (1, False)


async def test_a_page_is_read_again_in_new_worlds_where_reading_fails(manager, site, monkeypatch):
    """Chromium may give a world an element that its methods reject."""
    read_in = []

    async def breaking_the_first_world(worlds, most_chars):
        read_in.append(worlds[0].context_id)
        if len(read_in) == 1:
            getter = "{ get() { throw TypeError('Illegal invocation') } }"
            await worlds[0].evaluate(
                f"() => void Object.defineProperty(Node.prototype, 'nextSibling', {getter})"
            )
        return await read_text(worlds, most_chars)

    monkeypatch.setattr("mind2web2.capture.page.capture.read_text", breaking_the_first_world)
    page = await captured(manager, site, "/rejected", f"<!doctype html><p>{PROSE}</p>")
    assert PROSE.strip() in page.text
    assert len(set(read_in)) == 2
