"""The text read from a page is what the eye sees, in the page's structure, and nothing else."""

import asyncio

import pytest
from capture.loaded import cases, lines

from mind2web2.capture.page.devtools import ScriptError
from mind2web2.capture.page.isolated_world import open_worlds
from mind2web2.capture.page.text import read_text

LIMIT = 1_000_000
PIXEL = "data:image/gif;base64,R0lGODlhAQABAAAAACw="


async def page_text(page, max_chars=LIMIT):
    """Read the page as it stands."""
    session = await page.context.new_cdp_session(page)
    reading = await read_text(await open_worlds(page, session), max_chars)
    await session.detach()
    return reading


async def text_of(page, html, script=None):
    """Show HTML, run the page's own script, read the text."""
    await page.set_content(f"<!doctype html><body>{html}")
    if script:
        await page.evaluate(script, isolated_context=False)
    return (await page_text(page)).text


@pytest.mark.parametrize(("html", "expected"), cases("visible_text_cases"))
async def test_what_is_shown_is_read_with_its_structure(page, html, expected):
    """Words stay together, blocks and items apart, and signs get a word."""
    assert await text_of(page, html) == expected


@pytest.mark.parametrize("style", lines("hidden_styles"))
async def test_what_the_eye_cannot_see_is_left_out(page, style):
    """No way of hiding text brings it into the page's text, neither directly nor from within."""
    html = (
        f"before<div style='{style}'>secret<p>inner <b>secret</b></div><p style='background: "
        "#eee'>after"
    )
    assert (await text_of(page, html)).split() == ["before", "after"]


@pytest.mark.parametrize(
    ("page_style", "style", "is_seen"),
    [
        ("", "left: -3000px", True),
        ("", "right: -3000px", False),
        ("overflow-x: hidden", "left: -3000px", False),
        ("overflow-x: hidden", "right: -3000px", False),
    ],
)
async def test_a_page_in_arabic_scrolls_to_the_left(page, page_style, style, is_seen):
    """Nobody gets to what is placed right of it, or left of one that does not scroll."""
    html = f"<p style='position: absolute; {style}'>aside</p>after"
    await page.set_content(f"<!doctype html><body dir=rtl style='{page_style}'>{html}")
    assert ("aside" in (await page_text(page)).text) is is_seen


@pytest.mark.parametrize("style", lines("seen_styles"))
async def test_what_is_styled_but_seen_is_read(page, style):
    """The same properties, as pages use them for show, hide nothing."""
    html = f"<div style='{style}'>plain<p>inner</div><p style='background: #eee'>after"
    assert (await text_of(page, html)).split() == ["plain", "inner", "after"]


async def test_a_card_shows_the_side_that_is_turned_to_us(page):
    """Turned over, what was its back is its front."""
    side = "position: absolute; backface-visibility: hidden"
    html = (
        "<div id=card style='transform-style: preserve-3d; height: 50px'>"
        f"<p style='{side}'>front<p style='{side}; transform: rotateY(180deg)'>back</div>"
    )
    assert await text_of(page, html) == "front"
    assert await text_of(page, html, "card.style.transform = 'rotateY(180deg)'") == "back"


@pytest.mark.parametrize("html", lines("hidden_markup"))
async def test_what_is_not_rendered_is_left_out(page, html):
    """Elements that show nothing add nothing."""
    assert "secret" not in await text_of(page, f"{html}<p>end")


@pytest.mark.parametrize(("html", "expected"), cases("table_text_cases"))
async def test_a_cell_can_be_attributed_to_its_row_and_column(page, html, expected):
    """Tables of data are Markdown tables, tables that arrange the page are blocks."""
    assert await text_of(page, html) == expected


async def test_a_very_wide_table_names_the_column_at_each_cell(page):
    """Nobody counts to the 60th column."""
    heads = "".join(f"<th>h{i}" for i in range(60))
    cells = "".join(f"<td>v{i}" for i in range(60))
    text = await text_of(page, f"<table><tr>{heads}<tr>{cells}</table>")
    assert text.startswith("- h0: v0\n  h1: v1\n")
    assert text.endswith("\n  h59: v59")


async def test_shadow_roots_show_their_slots_in_order(page):
    """Open and closed roots are read as they are shown; children that no slot takes are not."""
    script = """() => {
        const root = document.querySelector('#open').attachShadow({ mode: 'open' });
        root.innerHTML =
            '<p>A: <slot></slot></p><p>B: <slot name=b>unused</slot></p><p><slot name=c>fallback</slot></p>';
        const closed = document.querySelector('x-outer').attachShadow({ mode: 'closed' });
        closed.innerHTML = '<p>closed <x-inner></x-inner></p>';
        closed.querySelector('x-inner').attachShadow({ mode: 'closed' }).innerHTML = 'inner';
    }"""
    html = (
        "<div id=open><b slot=b>bee</b><i slot=none>unseen</i>rest</div><x-outer>unseen</x-outer>"
    )
    assert await text_of(page, html, script) == "A: rest\n\nB: bee\n\nfallback\n\nclosed inner"


@pytest.mark.parametrize("light", ["unseen", "<!-- --><p>unseen</p>", ""])
async def test_a_closed_root_shows_even_where_its_host_has_other_children(page, light):
    """A plain element whose own children are not rendered has a root that shows instead."""
    script = "() => { host.attachShadow({ mode: 'closed' }).innerHTML = '<p>shown'; }"
    assert await text_of(page, f"<div id=host>{light}</div>", script) == "shown"


async def test_frames_stand_at_their_place(page):
    """A frame's text comes between what is before and after it, indented as its place is."""
    html = "<p>a<ul><li>item<iframe srcdoc='<p>in</p><p>two</p>'></iframe></ul><p>b"
    assert await text_of(page, html) == "a\n\n- item\n  in\n\n  two\n\nb"


async def test_a_frame_within_a_cell_stays_in_its_row(page):
    """A row of a table stays one line whatever its cells hold."""
    html = "<table><tr><th>a<th>b<tr><td>x<td><iframe srcdoc='<p>1|2</p><p>3</p>'></iframe></table>"
    assert (await text_of(page, html)).endswith("| x | 1\\|2 / 3 |")


async def test_a_frame_of_another_site_is_read_too(page):
    async def serve(reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        port = writer.get_extra_info("sockname")[1]
        is_inner = head.startswith(b"GET /inner")
        body = (
            "<p>inner"
            if is_inner
            else f"outer<iframe src='http://localhost:{port}/inner'></iframe>"
        )
        writer.write(
            f"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n<!doctype html>{body}".encode()
        )
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, port=0, host="127.0.0.1") as server:
        await page.goto(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
        assert (await page_text(page)).text == "outer\n\ninner"


async def test_markup_that_hides_dom_properties_hides_no_text(page):
    """Names of form fields and elements come before a form's and document's own properties."""
    names = ["childNodes", "firstChild", "nextSibling", "nodeType", "localName"]
    names += ["attributes", "getAttribute", "parentNode"]
    fields = "".join(f"<input name={name}>" for name in names)
    images = "".join(
        f"<img name={name}>"
        for name in ["documentElement", "body", "title", "styleSheets", "compatMode"]
    )
    maps = "<p id=frameIds>x</p><p id=closedRoots>y</p>"
    assert await text_of(page, f"<form>{fields}kept</form>{images}{maps}") == "kept\n\nx\n\ny"


async def test_page_scripts_cannot_forge_the_text(page):
    script = """() => {
        Object.defineProperty(CharacterData.prototype, 'data', { get: () => 'forged' });
        Object.defineProperty(Node.prototype, 'firstChild', { get: () => null });
        window.getComputedStyle = () => ({ display: 'none' });
    }"""
    assert await text_of(page, "<p>true", script) == "true"


async def test_text_cannot_pass_for_a_frame(page):
    """The marks of frames are made of characters that are dropped from text."""
    assert (
        await text_of(page, "<p>&#1;x&#1;", "() => document.body.append('\\u0001y\\u0001')")
        == "x\n\ny"
    )


async def test_nesting_without_end_is_read(page):
    script = """() => { let at = document.body;
        for (let i = 0; i < 1500; i++) at = at.appendChild(document.createElement('div'));
        at.append('deep'); }"""
    assert await text_of(page, "top", script) == "top\ndeep"


async def test_what_is_over_the_limit_is_cut_and_said(page):
    """A page of any size costs no more than the limit."""
    await page.set_content("<!doctype html>" + "<p>0123456789" * 100)
    reading = await page_text(page, 50)
    assert reading.is_cut
    assert reading.text == "0123456789\n\n" * 4 + "01"


async def test_a_page_within_the_limit_is_not_called_cut(page):
    await page.set_content("<!doctype html>0123456789")
    reading = await page_text(page, 10)
    assert (reading.text, reading.is_cut) == ("0123456789", False)


async def test_password_fields_are_counted(page):
    """Fields in frames are counted too."""
    await page.set_content(
        "<!doctype html><title> A \n title</title><form><input type=password><input></form>"
        "<iframe srcdoc='<input type=PASSWORD>'></iframe>"
    )
    reading = await page_text(page)
    assert reading.title == "A title"
    assert (reading.password_fields, reading.unread_frames) == (2, ())


async def test_a_page_without_a_document_element_is_empty(page):
    await page.goto(
        "data:text/html,<script>setTimeout(() => document.documentElement.remove())</script>x"
    )
    session = await page.context.new_cdp_session(page)
    world = (await open_worlds(page, session))[0]
    await world.evaluate(
        "async () => { while (document.documentElement) await new Promise(requestAnimationFrame); }"
    )
    assert (await read_text([world], LIMIT)).text == ""


async def test_a_main_frame_that_is_gone_is_an_error(page):
    """An empty text would look like an empty page."""
    session = await page.context.new_cdp_session(page)
    worlds = await open_worlds(page, session)
    await page.goto("data:text/html,elsewhere")
    with pytest.raises(ScriptError):
        await read_text(worlds, LIMIT)


async def test_worlds_of_another_name_read_what_a_broken_world_cannot(page):
    """Chromium may give a world an element that its methods reject.

    A capture then reads in new worlds.
    """
    await page.set_content("<!doctype html><body><p>The weir is open.")
    session = await page.context.new_cdp_session(page)
    (broken,) = await open_worlds(page, session)
    getter = "{ get() { throw TypeError('Illegal') } }"
    await broken.evaluate(
        f"() => void Object.defineProperty(Node.prototype, 'nextSibling', {getter})"
    )
    with pytest.raises(ScriptError, match="Illegal"):
        await read_text(await open_worlds(page, session), LIMIT)
    assert (
        await read_text(await open_worlds(page, session, "another"), LIMIT)
    ).text == "The weir is open."
    await session.detach()
