"""Banners and dialogs go from over the page, and what they say does not get lost."""

import pytest
from capture.loaded import cases, load

from mind2web2.capture.page.overlays import close_banners, pass_consent_wall

ARTICLE = (
    "<h1>Lighthouse</h1>" + "<p>It was built in 1853 of granite and stands 40 metres tall.</p>" * 8
)
COVER = "position:fixed;inset:0;z-index:9999;background:#fff"
BAR = "position:fixed;bottom:0;left:0;right:0;z-index:9999;background:#fff"
ASKS = "We use cookies and similar technologies to improve your experience. Do you consent to this?"


async def cleared(page, html):
    """Load HTML, clear it, and return the loaded page with what was done."""
    loaded = await load(page, html)
    return loaded, await close_banners(loaded.worlds, 10, loaded.rest)


def banner(*buttons, style=BAR, text=ASKS, attributes="id=b"):
    """Return a banner whose buttons each note their name and close it."""
    pressable = "".join(
        f"<button onclick=\"document.title='{name}'; "
        f"this.closest('#b,[data-b]').remove()\">{name}</button>"
        for name in buttons
    )
    return f"<div {attributes} style='{style}'><p>{text}</p>{pressable}</div>"


@pytest.mark.parametrize(("buttons", "text", "pressed"), cases("banner_cases"))
async def test_banners_are_refused_else_accepted(page, buttons, text, pressed):
    """The button that refuses is pressed, and only where there is none the one that agrees."""
    loaded, result = await cleared(page, ARTICLE + banner(*buttons.split("|"), text=text))
    assert await loaded.value("document.title") == pressed
    assert text not in await loaded.seen()
    assert len(result.done) == 1


@pytest.mark.parametrize(("name", "box", "button"), cases("vendor_cases"))
async def test_banners_of_vendors_are_known(page, name, box, button):
    """Vendors' banners are answered by the vendor's own button."""
    box = box.replace("{cover}", COVER).replace("{bar}", BAR)
    html = f"<div data-b {box}>{ASKS}{button}</button></a></div></div>"
    script = (
        "<script>document.querySelector('[data-b] button, [data-b] a').onclick = (e) =>"
        "{ document.title = 'pressed'; e.target.closest('[data-b]').remove() }</script>"
    )
    loaded, result = await cleared(page, ARTICLE + html + script)
    assert result.done == (f"consent banner ({name}): rejected",)
    assert await loaded.value("document.title") == "pressed"


@pytest.mark.parametrize("mode", ["open", "closed"])
async def test_banners_in_shadow_roots_are_answered(page, mode):
    """A banner that hides in a shadow root is answered like any other."""
    html = (
        f"{ARTICLE}<div id=usercentrics-root></div><script>"
        f"const host = document.querySelector('#usercentrics-root'); const root = "
        f"host.attachShadow({{mode: '{mode}'}});"
        f"root.innerHTML = `<div style='{COVER}'>{ASKS}<button "
        f"data-testid=uc-deny-all-button>Deny</button></div>`;"
        "root.querySelector('button').onclick = () => { document.title = 'pressed'; host.remove() "
        "}</script>"
    )
    loaded, result = await cleared(page, html)
    assert result.done == ("consent banner (Usercentrics): rejected",)
    assert await loaded.value("document.title") == "pressed"


async def test_banners_in_frames_are_answered(page):
    """A banner in a frame is answered there, and the frame's box does not stay over the page."""
    html = (
        f"{ARTICLE}<div id=sp_message_container_1 style='{COVER}'><iframe id=sp_message_iframe_1 "
        "width=600 "
        f"height=400"
        f' srcdoc="<title>SP Consent Message</title><div class=message-container>{ASKS}<button '
        f"title='Accept all' onclick='document.title=1'>"
        'Accept all</button></div>"></iframe></div>'
    )
    loaded, result = await cleared(page, html)
    assert await loaded.value("document.title", frame=1) == "1"
    assert (
        await loaded.value("document.elementFromPoint(300, 300).closest('#sp_message_container_1')")
        is None
    )
    assert result.done


async def test_banners_without_a_way_out_are_removed(page):
    """A banner without a button is removed, and the page scrolls and is sharp again."""
    html = (
        f"<style>html,body{{overflow:hidden;"
        f"height:100%}}main{{filter:blur(5px)}}</style><main>{ARTICLE * 9}</main><div "
        f"class=cookie-banner style='{COVER}'>{ASKS} <a href='/privacy'>Privacy policy</a></div>"
    )
    loaded, result = await cleared(page, html)
    assert result.done == ("consent banner (generic): removed",)
    assert ASKS not in await loaded.seen()
    assert await loaded.value("getComputedStyle(document.body).overflowY") == "visible"
    assert await loaded.value("getComputedStyle(document.querySelector('main')).filter") == "none"


@pytest.mark.parametrize(
    ("html", "filters"),
    [
        (f"<main>{ARTICLE * 9}<p style='filter:blur(8px)'>Paid</p></main>", "blur(8px)"),
        (f"<article>{ARTICLE * 9}</article><p style='filter:blur(8px)'>Paid</p>", "blur(8px)"),
        (f"<main style='filter:blur(8px)'>{ARTICLE * 9}<p>Free</p></main>", "none"),
    ],
)
async def test_a_part_that_is_blurred_stays_so(page, html, filters):
    """A page is sharp again, but not the part that it keeps for subscribers."""
    loaded, _ = await cleared(page, html)
    blurred = "document.querySelector('[style]')"
    assert await loaded.value(f"getComputedStyle({blurred}).filter") == filters


@pytest.mark.parametrize(
    ("html", "kept"),
    [
        (
            f"<main style='position:fixed;inset:0;overflow:auto'><h1>Cookies and consent</h1>"
            f"{f'<p>{ASKS}</p>' * 40}</main><button>Accept</button>",
            ASKS,
        ),
        (
            f"{ARTICLE}<div style='{BAR}'>Our best chocolate cookies: bake for 12 minutes."
            "<button>Close</button></div>",
            "12 minutes",
        ),
    ],
    ids=["an article in a fixed box", "a recipe"],
)
async def test_content_about_cookies_is_no_banner(page, html, kept):
    """A fixed box that holds most of the page, and one that asks for nothing, stay."""
    loaded, result = await cleared(page, html)
    assert kept in await loaded.seen()
    assert (result.done, result.consent_wall) == ((), None)


async def test_a_page_with_nothing_but_a_banner_is_a_consent_wall(page):
    _, result = await cleared(page, banner("Accept", style=COVER))
    assert result.consent_wall is not None
    assert result.consent_wall.startswith("We use cookies")


@pytest.mark.parametrize("content", [ARTICLE, "<p>The lighthouse is 41 metres tall.</p>"])
async def test_a_page_behind_its_banner_is_no_wall(page, content):
    """The text that is left once the banner is answered is the page, were it one sentence."""
    _, result = await cleared(page, content + banner("Accept", style=COVER))
    assert result.consent_wall is None


async def test_dialogs_are_closed_and_their_text_is_kept(page):
    """A dialog over the page is closed by its own button.

    Its text is read at the page's end.
    """
    html = (
        f"{ARTICLE}<div role=dialog aria-modal=true id=d style='{COVER}'><button aria-label=Close"
        " onclick='d.remove()'>x</button><p>The price is 12 euros.</p></div>"
    )
    loaded, result = await cleared(page, html)
    assert (await loaded.seen()).endswith("The price is 12 euros.")
    assert await loaded.value("document.querySelector('#d')") is None
    assert result.done[0].startswith("overlay closed")


@pytest.mark.parametrize(
    ("cover", "text"),
    [
        (
            f"<div style='{COVER}'><p>The price is 12 euros.</p></div>",
            "The price is 12 euros.",
        ),
        (
            f"<div style='{COVER}'><p>Join our newsletter!</p><input type=email>"
            "<button>No thanks</button></div>",
            "Join our newsletter!",
        ),
        (f"<div style='{COVER};opacity:.5'></div>", ""),
    ],
    ids=["a dialog", "a newsletter", "a backdrop"],
)
async def test_covers_without_a_button_are_moved_aside(page, cover, text):
    loaded, _ = await cleared(page, ARTICLE + cover)
    seen = await loaded.seen()
    assert text in seen.removeprefix(seen[: len(seen) // 2])
    assert not text or seen.count(text) == 1
    assert await loaded.value("document.elementFromPoint(20, 40).tagName") == "H1"


async def test_modal_dialog_elements_are_moved_aside(page):
    """A dialog of the top layer leaves it, with its text."""
    html = (
        f"{ARTICLE}<dialog id=d><p>The price is 12 "
        "euros.</p></dialog><script>d.showModal()</script>"
    )
    loaded, _ = await cleared(page, html)
    assert "The price is 12 euros." in await loaded.seen()
    assert await loaded.value("document.querySelector('dialog:modal')") is None


async def test_panels_of_products_are_kept(page):
    """A fixed panel with an offer and a quantity to choose is content."""
    html = (
        f"{ARTICLE}<div style='position:fixed;right:0;top:0;bottom:0;width:40%;background:#fff'>"
        "<h1>Oak chair</h1><p>199 euros <b>20% off</b></p><label>Quantity <input type=number "
        "value=1></label></div>"
    )
    loaded, _ = await cleared(page, html)
    assert "199 euros | 20% off" in await loaded.seen()


POLICY = (
    "<p>We use cookies. This cookie is kept for 90 days.</p>"
    "<p>You can reject cookies in your browser.</p>"
)


@pytest.mark.parametrize(
    "html",
    [
        f"<title>Privacy Policy</title>{POLICY}<form>Country <select name=c><option>US</select>"
        "<button>Continue</button></form>",
        f"<title>Cookie Policy</title>{POLICY}<form method=post><input type=email>"
        "<button>Confirm</button></form>",
        f"<title>Cookie Policy</title>{POLICY}<form><input type=email><button>I "
        "agree</button></form>",
        f"<title>Cookie Policy</title>{POLICY}<input type=email><button>Accept</button>",
        f"<title>Privacy</title>{POLICY}<button>Save</button><button>OK</button>"
        "<button>Opt out of sale</button>",
    ],
)
async def test_a_short_policy_is_no_consent_wall(page, html):
    """A page about cookies is content, and nothing on it is pressed."""
    note = "<script>addEventListener('click', () => { document.title = 'pressed' }, true)</script>"
    loaded, result = await cleared(page, html + note)
    assert result.consent_wall is None
    assert not await pass_consent_wall(loaded.worlds[0])
    assert await loaded.value("document.title") != "pressed"


@pytest.mark.parametrize(
    ("buttons", "pressed"),
    [
        ("<button>Reject all</button><button>Accept all</button>", "Reject all"),
        ("<button>Settings</button><button>I agree</button>", "I agree"),
        (
            "<button>Alle akzeptieren</button><button>Auswahl speichern</button>",
            "Alle akzeptieren",
        ),
        ("<button>Continue</button><button>OK</button>", None),
    ],
)
async def test_only_an_answer_by_name_leads_past_a_consent_wall(page, buttons, pressed):
    html = (
        f"<h1>Before you continue</h1><p>{ASKS} Cookies help us measure.</p>"
        f"<form onsubmit='return false'><input type=hidden name=next>{buttons}</form>"
        "<script>addEventListener('click', (e) => { document.title = e.target.textContent }, "
        "true)</script>"
    )
    loaded, result = await cleared(page, html)
    assert result.consent_wall is not None
    assert await pass_consent_wall(loaded.worlds[0]) is (pressed is not None)
    assert await loaded.value("document.title") == (pressed or "")


async def test_forms_are_no_banners(page):
    html = (
        f"{ARTICLE}<div style='{BAR}'>We use your personal data as our privacy policy says, and "
        "you agree."
        "<input type=email><button onclick=\"document.title='sent'\">Confirm</button></div>"
    )
    loaded, _ = await cleared(page, html)
    assert await loaded.value("document.title") != "sent"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (
            "It looks like you are using an ad blocker. Please turn it off.",
            "adblock wall",
        ),
        ("Subscribe to continue reading. You have no free articles left.", "paywall"),
        ("Log in to continue. Create a free account to see this page.", "login wall"),
    ],
)
async def test_walls_are_reported_and_left(page, text, kind):
    loaded, result = await cleared(
        page, f"{ARTICLE}<div role=dialog style='{COVER}'><p>{text}</p></div>"
    )
    assert result.walls[0].startswith(f"{kind}: ")
    assert text in await loaded.seen()


async def test_a_page_without_overlays_stays_as_it_is(page):
    """Headers and small fixed boxes are not overlays."""
    html = (
        "<header "
        f"style='position:fixed;top:0;left:0;right:0;height:60px'>Site</header>{ARTICLE}<div "
        "style='position:fixed;right:0;bottom:0'>Chat</div>"
    )
    loaded = await load(page, html)
    before = await loaded.value("document.body.innerHTML")
    result = await close_banners(loaded.worlds, 10, loaded.rest)
    assert result == type(result)()
    assert await loaded.value("document.body.innerHTML") == before
