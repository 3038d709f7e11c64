"""The text read from a page is what the eye sees, in the page's structure, and nothing else."""

import asyncio

import pytest
from mind2web2.capture.page_text import read_text
from mind2web2.capture.world import ScriptError, open_worlds

LIMIT = 1_000_000
PIXEL = "data:image/gif;base64,R0lGODlhAQABAAAAACw="


async def page_text(page, max_chars=LIMIT):
    """Read the page as it stands."""
    session = await page.context.new_cdp_session(page)
    return await read_text(await open_worlds(page, session), max_chars)


async def text_of(page, html, script=None):
    """Show HTML, run the page's own script, read the text."""
    await page.set_content(f"<!doctype html><body>{html}")
    if script:
        await page.evaluate(script, isolated_context=False)
    return (await page_text(page)).text


VISIBLE = {
    "un<b>believ</b>able <i>word</i>s": "unbelievable words",
    "<div>one</div><div>two</div>three": "one\ntwo\nthree",
    "<p>one</p><p>two</p>": "one\n\ntwo",
    "a<br>b<br><br>c": "a\nb\n\nc",
    "<h1>Big <span>head</span><br>line</h1>text<h3>Small</h3>": "# Big head line\n\ntext\n\n### Small",
    "<div role=heading aria-level=4>Four</div>": "#### Four",
    "<ul><li>a<li>b<ul><li>c<p>d</ul><li></ul>": "- a\n- b\n  - c\n    d",
    "<ol start=3><li>a<li value=9>b<li>c</ol>": "3. a\n9. b\n10. c",
    "<ol reversed type=a><li>x<li>y</ol>": "b. x\na. y",
    "<ol type=I start=4><li>x<li>y</ol>": "IV. x\nV. y",
    "<ul style='list-style-type: \"✓ \"'><li>x</ul>": "✓ x",
    "<dl><dt>term<dd>meaning</dl>": "term\n: meaning",
    "<blockquote>said<p>more</blockquote>after": "> said\n> more\n\nafter",
    "<pre>a  b\n  c\n\nd</pre>": "```\na  b\n  c\n\nd\n```",
    "<pre>  </pre>x": "x",
    "<div style='white-space: pre-line'>a   b\nc</div>": "a b\nc",
    "<div style='white-space: pre-wrap'>a  b\n c</div>": "a  b\n c",
    "<hr>x": "---\n\nx",
    "x<sup>2</sup> 10<sup>6</sup> e<sup>a + b</sup> 1<sup>st</sup>": "x^2 10^6 e^(a + b) 1st",
    "fact<sup><a href='#n'>12</a></sup> H<sub>2</sub>O log 2<sub>8</sub>": "fact[12] H2O log 2_8",
    "$19<sup>99</sup>": "$19.99",
    "<del>$20</del> <s>$18</s> $10": "~~$20~~ ~~$18~~ $10",
    "<span style='text-decoration: line-through'>$20</span>$10": "~~$20~~$10",
    "<ruby>漢<rp>(</rp><rt>kan</rt><rp>)</rp></ruby>": "漢(kan)",
    "<q>so</q>": "“so”",
    "<math><msup><mi>x</mi><mn>2</mn></msup><mo>=</mo><mfrac><mn>1</mn><mn>2</mn></mfrac></math>": "x^2 = 1/2",
    "<math><semantics><mi>x</mi><annotation encoding='application/x-tex'>x_0</annotation></semantics></math>": "x_0",
    f"<img src='{PIXEL}' alt='A cat' width=20 height=20>": "[image: A cat]",
    f"<img src='{PIXEL}' alt='' width=20 height=20>x": "x",
    "<svg width=90 height=40><title>Sales</title><text x=0 y=20>1998</text></svg>": "[image: Sales]\n1998",
    "<figure>x<figcaption>caption</figcaption></figure>": "x\ncaption",
    "<div role=img aria-label='4.5 out of 5'>★★★★☆</div>": "[image: 4.5 out of 5] ★★★★☆",
    "<button aria-label=Close></button><a href=x title=Home style='padding: 9px'></a>": "[button: Close] [link: Home]",
    "<button><svg width=20 height=20></svg><span style='position:absolute; opacity:0'>Find</span></button>": "[image: Find]",
    "<input value=typed><input placeholder=Name><input type=submit>": "[input: typed] [placeholder: Name] [button: Submit]",
    "<input type=checkbox checked>yes <input type=radio>no": "[x] yes ( ) no",
    "<input type=password value=secret><input type=hidden value=h>x": "x",
    "<select><option>A<option selected>B</select>": "[select: B; options: A; B]",
    "<textarea>one\ntwo</textarea>": "[input: one\ntwo]",
    "<progress value=7 max=10></progress>": "[progress: 7 of 10]",
    "<details><summary>more</summary>folded</details>": "more",
    "<details open><summary>more</summary>unfolded</details>": "more\nunfolded",
    "<div aria-hidden=true>seen</div>": "seen",
    "<style>b::before { content: '✓ ' } b::after { content: ' ' attr(x) }</style><b x=€>5</b>": "✓ 5 €",
    "<style>h2 { counter-increment: n } h2::before { content: counter(n) '. ' }</style><h2>a</h2><h2>b</h2>": (
        "## 1. a\n\n## 2. b"
    ),
    "<style>i::before { content: '\\e001' }</style><i></i>x": "x",
    "<span style='text-transform: uppercase'>Case</span>": "Case",
    "a\u00adb\u200bc\ufeff d\u00a0\u00a0e \U000e0041\u202ef": "abc d e f",
    "<div style='display: contents'><p>a</div>b": "a\n\nb",
    "<p style='visibility: hidden'>x<b style='visibility: visible'>y</b></p>": "y",
    "<div style='height: 0; overflow: visible'>shown</div>": "shown",
    "<div style='height: 1px; overflow: hidden'><b style='position: fixed'>shown</b></div>": "shown",
    "<div style='background: black; color: white'>shown</div>": "shown",
    "<div style='position: absolute; background: black; inset: 0'></div><b style='position:relative; color: white'>shown</b>": (
        "shown"
    ),
    "<b style='background: linear-gradient(red, blue); background-clip: text; color: transparent'>shown</b>": "shown",
    "<div style='height: 20px; overflow: hidden'><p>a<p>b<p>c</div>": "a\n\nb\n\nc",
    "<div style='width: 99px; overflow: hidden; display: flex'><p style='flex: 0 0 99px; transform: translateX(-99px)'>slide": (
        "slide"
    ),
    "<a style='display: inline-block; padding: 9px'>Home</a><a style='display: inline-block; padding: 9px'>Me</a>": "Home Me",
    "<b style='display: inline-block'>H</b><b style='display: inline-block'>i</b>": "Hi",
    "<div style='display: flex; gap: 40px'><div>Price</div><div>$5</div></div>": "Price | $5",
    "<div style='display: flex; flex-direction: column'><b>Price</b><b>$5</b></div>": "Price\n$5",
    "<div style='display: grid; grid-template-columns: 99px 99px'><b>a</b><b>b</b><b>c</b><b>d</b></div>": "a | b\nc | d",
    "<div style='display: flex'><b>$</b><b style='font-size: 40px'>19</b><b style='font-size: 12px'>99</b></div>": "$19.99",
    "<p><span style='float: left; font-size: 60px'>O</span>nce upon": "Once upon",
}


@pytest.mark.parametrize(("html", "expected"), VISIBLE.items(), ids=range(len(VISIBLE)))
async def test_what_is_shown_is_read_with_its_structure(page, html, expected):
    """Words stay together, blocks and items apart, and signs that are not text have a word of their own."""
    assert await text_of(page, html) == expected


HIDDEN_STYLES = [
    "display: none",
    "visibility: hidden",
    "opacity: 0",
    "content-visibility: hidden",
    "font-size: 0",
    "color: transparent",
    "-webkit-text-fill-color: transparent",
    "color: white",
    "color: #123456; background: #123456",
    "text-indent: -9999px",
    "margin-left: -9999px",
    "position: absolute; left: -9999px",
    "position: absolute; top: -5000px",
    "position: fixed; left: 110%",
    "position: absolute; clip: rect(0, 0, 0, 0)",
    "position: absolute; clip: rect(1px, 1px, 1px, 1px)",
    "clip-path: inset(50%)",
    "clip-path: circle(0)",
    "clip-path: polygon(0 0, 0 0, 0 0)",
    "position: absolute; width: 1px; height: 1px; overflow: hidden",
    "height: 0; overflow: hidden",
    "max-height: 0; overflow-y: clip",
    "width: 0; overflow: hidden; white-space: nowrap",
    "transform: scale(0)",
    "transform: translateX(-200vw)",
]


@pytest.mark.parametrize("style", HIDDEN_STYLES)
async def test_what_the_eye_cannot_see_is_left_out(page, style):
    """No way of hiding text brings it into the page's text, neither directly nor from within."""
    html = f"before<div style='{style}'>secret<p>inner <b>secret</b></div><div style='background: #eee'>after</div>"
    assert await text_of(page, html) == "before\nafter"


HIDDEN_MARKUP = [
    "<script>secret</script>",
    "<template>secret</template>",
    "<noscript>secret</noscript>",
    "<!-- secret -->",
    "<div hidden>secret</div>",
    "<dialog>secret</dialog>",
    "<div popover>secret</div>",
    "<datalist><option>secret</datalist>",
    "<canvas>secret</canvas>",
    "<video>secret</video>",
    "<style>b::before { content: 'secret'; opacity: 0 }</style><b></b>",
    "<iframe hidden srcdoc=secret></iframe>",
    "<iframe width=0 height=0 srcdoc=secret></iframe>",
    "<div style='overflow: hidden; position: relative; height: 40px'><p style='position: absolute; left: -9999px'>secret</div>",
    f"<img style='visibility: hidden' src='{PIXEL}' alt=secret width=20 height=20>",
    "<span style='position: absolute; clip: rect(0, 0, 0, 0)'>secret</span>",
    "<b title=secret>after</b><!--",
]


@pytest.mark.parametrize("html", HIDDEN_MARKUP)
async def test_what_is_not_rendered_is_left_out(page, html):
    """Elements that show nothing add nothing."""
    assert "secret" not in await text_of(page, f"{html}<p>end")


TABLES = {
    "<table><caption>Sizes</caption><tr><th>Name<th>Size<tr><td>A<td>1|2<tr><td>B<td></table>": (
        "Sizes\n| Name | Size |\n| --- | --- |\n| A | 1\\|2 |\n| B |  |"
    ),
    "<table><tr><th rowspan=2>Who<th colspan=2>Won<tr><th>1998<th>1999<tr><th>A<td>1<td>2</table>": (
        "| Who | Won / 1998 | Won / 1999 |\n| --- | --- | --- |\n| A | 1 | 2 |"
    ),
    "<table><tr><th>a<th>b<th>c<tr><td rowspan=2>x<td colspan=2>y<tr><td>1<td>2</table>": (
        "| a | b | c |\n| --- | --- | --- |\n| x | y | y |\n| x | 1 | 2 |"
    ),
    "<table><tr><th>a<th>b<tr><td colspan=2>all<tr><td>1<td><p>2<p>3<br>4</table>": (
        "| a | b |\n| --- | --- |\n| all |  |\n| 1 | 2 / 3 / 4 |"
    ),
    "<table><tfoot><tr><td>sum<td>3</tfoot><thead><tr><th>a<th>b</thead><tr><td>x<td>3</table>": (
        "| a | b |\n| --- | --- |\n| x | 3 |\n| sum | 3 |"
    ),
    "<table><tr><td>a<td>b<tr><td>c<td>d</table>": "|  |  |\n| --- | --- |\n| a | b |\n| c | d |",
    "<table><tr><th>a<th style='display:none'>x<th>b<tr><td>1<td style='display:none'>y<td>2</table>": (
        "| a | b |\n| --- | --- |\n| 1 | 2 |"
    ),
    "<div role=table><div role=row><b role=columnheader>a</b><b role=columnheader>b</b></div>"
    "<div role=row><b role=cell>1</b><b role=cell>2</b></div></div>": "| a | b |\n| --- | --- |\n| 1 | 2 |",
    "<div style='display: table'><div style='display: table-row'><p style='display: table-cell'>a</p>"
    "<p style='display: table-cell'>b</p></div><div style='display: table-row'><p style='display: table-cell'>c</p>"
    "<p style='display: table-cell'>d</p></div></div>": "|  |  |\n| --- | --- |\n| a | b |\n| c | d |",
    "<table role=presentation><tr><td><h2>Head</h2><p>text</td><td>side</table>": "## Head\n\ntext\nside",
    "<table><tr><th>a<th>b<tr><td>x<td><table><tr><th>in<tr><td>1</table></table>": (
        "- a: x\n  b:\n  | in |\n  | --- |\n  | 1 |"
    ),
    "<table><tr><td><ul><li>one<li>two</ul><td>x</table>": "- one\n- two\nx",
    "<table><tr><td colspan=100%>a<td>b<tr><td colspan=5000>wide<tr></table>": "|  |  |\n| --- | --- |\n| a | b |\n| wide |  |",
}


@pytest.mark.parametrize(("html", "expected"), TABLES.items(), ids=range(len(TABLES)))
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
        root.innerHTML = '<p>A: <slot></slot></p><p>B: <slot name=b>unused</slot></p><p><slot name=c>fallback</slot></p>';
        const closed = document.querySelector('#closed').attachShadow({ mode: 'closed' });
        closed.innerHTML = '<p>closed <x-inner></x-inner></p>';
        closed.querySelector('x-inner').attachShadow({ mode: 'closed' }).innerHTML = 'inner';
    }"""
    html = "<div id=open><b slot=b>bee</b><i slot=none>unseen</i>rest</div><div id=closed>unseen</div>"
    assert await text_of(page, html, script) == "A: rest\n\nB: bee\n\nfallback\n\nclosed inner"


async def test_frames_stand_at_their_place(page):
    """A frame's text comes between what is before and after it, indented as its place is."""
    html = "<p>a<ul><li>item<iframe srcdoc='<p>in</p><p>two</p>'></iframe></ul><p>b"
    assert await text_of(page, html) == "a\n\n- item\n  in\n\n  two\n\nb"


async def test_a_frame_within_a_cell_stays_in_its_row(page):
    """A row of a table stays one line whatever its cells hold."""
    html = "<table><tr><th>a<th>b<tr><td>x<td><iframe srcdoc='<p>1|2</p><p>3</p>'></iframe></table>"
    assert (await text_of(page, html)).endswith("| x | 1\\|2 / 3 |")


async def test_a_frame_of_another_site_is_read_too(page):
    """Its document lives in another process."""

    async def serve(reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        port = writer.get_extra_info("sockname")[1]
        is_inner = head.startswith(b"GET /inner")
        body = "<p>inner" if is_inner else f"outer<iframe src='http://localhost:{port}/inner'></iframe>"
        writer.write(f"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n<!doctype html>{body}".encode())
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, port=0, host="127.0.0.1") as server:
        await page.goto(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
        assert (await page_text(page)).text == "outer\n\ninner"


async def test_markup_that_hides_dom_properties_hides_no_text(page):
    """Names of form fields and elements come before a form's and document's own properties."""
    names = [
        "childNodes",
        "firstChild",
        "nextSibling",
        "nodeType",
        "localName",
        "attributes",
        "getAttribute",
        "parentNode",
    ]
    fields = "".join(f"<input name={name}>" for name in names)
    images = "".join(
        f"<img name={name}>" for name in ["documentElement", "body", "title", "styleSheets", "compatMode"]
    )
    maps = "<p id=frameIds>x</p><p id=closedRoots>y</p>"
    assert await text_of(page, f"<form>{fields}kept</form>{images}{maps}") == "kept\n\nx\n\ny"


async def test_page_scripts_cannot_forge_the_text(page):
    """What a page makes of its own DOM methods is not what is used."""
    script = """() => {
        Object.defineProperty(CharacterData.prototype, 'data', { get: () => 'forged' });
        Object.defineProperty(Node.prototype, 'firstChild', { get: () => null });
        window.getComputedStyle = () => ({ display: 'none' });
    }"""
    assert await text_of(page, "<p>true", script) == "true"


async def test_text_cannot_pass_for_a_frame(page):
    """The marks of frames are made of characters that are dropped from text."""
    assert await text_of(page, "<p>&#1;x&#1;", "() => document.body.append('\\u0001y\\u0001')") == "x\n\ny"


async def test_nesting_without_end_is_read(page):
    """Ten thousand elements within each other neither break the reader nor hide the text."""
    script = """() => { let at = document.body;
        for (let i = 0; i < 10000; i++) at = at.appendChild(document.createElement('div'));
        at.append('deep'); }"""
    assert await text_of(page, "top", script) == "top\ndeep"


async def test_what_is_over_the_limit_is_cut_and_said(page):
    """A page of any size costs no more than the limit."""
    await page.set_content("<!doctype html>" + "<p>0123456789" * 100)
    reading = await page_text(page, 50)
    assert reading.is_cut
    assert reading.text == "0123456789\n\n" * 4 + "01"


async def test_a_page_within_the_limit_is_not_called_cut(page):
    """Nor when its text is just as long as allowed."""
    await page.set_content("<!doctype html>0123456789")
    reading = await page_text(page, 10)
    assert (reading.text, reading.is_cut) == ("0123456789", False)


async def test_counts_tell_what_kind_of_page_it_is(page):
    """Also what is in frames counts."""
    await page.set_content(
        "<!doctype html><title> A \n title</title><form><input type=password><input></form><a href=x>four</a>"
        "<iframe srcdoc='<a href=y>five5</a>'></iframe>"
    )
    reading = await page_text(page)
    assert reading.title == "A title"
    assert (reading.forms, reading.password_fields, reading.text_fields) == (1, 1, 1)
    assert (reading.links, reading.frames, reading.visible_chars, reading.unread_frames) == (2, 1, 9, ())


async def test_a_page_without_a_document_element_is_empty(page):
    """There is nothing to be read, which is not an error."""
    await page.set_content("x")
    await page.evaluate("() => document.documentElement.remove()")
    assert (await page_text(page)).text == ""


async def test_a_main_frame_that_is_gone_is_an_error(page):
    """An empty text would look like an empty page."""
    session = await page.context.new_cdp_session(page)
    worlds = await open_worlds(page, session)
    await page.goto("data:text/html,elsewhere")
    with pytest.raises(ScriptError):
        await read_text(worlds, LIMIT)
