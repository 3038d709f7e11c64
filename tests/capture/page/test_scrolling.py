"""Whatever loads when it comes into view has been in view."""

import asyncio
import dataclasses
import os
import signal
from html import escape
from pathlib import Path

import pytest
from capture.loaded import load
from capture.small_site import SmallSite
from fixtures.process_tree import descendants

from mind2web2.capture.models import CaptureSettings
from mind2web2.capture.page.isolated_world import FrameWorld
from mind2web2.capture.page.scrolling import scroll_through

PIXEL = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89"
    b"\x00\x00\x00\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\x00\x05\x00\x01\xff\x89\x99=\x1d\x00\x00\x00\x00IEND\xaeB`\x82"
)
TALL = "<p>Text</p><div style='height:30000px'></div>"
LISTENS = "<script>addEventListener('scroll', () => {})</script>"
# Three screens' worth of lines, and then as many again each time the end is near.
GROWING = """
<script>
const more = () => { for (let i = 0; i < 20; i++) {
  const line = document.createElement('p'); line.style.height = '100px';
  line.textContent = 'Line ' + list.children.length; list.append(line);
} };
more(); more();
</script>
"""


@pytest.fixture
def site():
    """A server on loopback."""
    with SmallSite() as running:
        yield running


async def scrolled(page, html, url=None):
    """Load a page, scroll through it, and return it with what was said about it."""
    loaded = await load(page, html, url)
    return loaded, await scroll_through(loaded.worlds, 20, loaded.rest)


async def test_scripts_that_listen_for_scrolling_are_heard(page):
    """Parts that a script fills once scrolling has paused at them are filled."""
    parts = "".join(f"<div style='height:900px' data-n={n}></div>" for n in range(8))
    script = (
        "<script>let timer; addEventListener('scroll', () => { "
        "clearTimeout(timer); timer = setTimeout(() => {"
        "for (const one of document.querySelectorAll('div')) { const box = "
        "one.getBoundingClientRect();"
        "if (box.top < innerHeight && box.bottom > 0) one.textContent = 'Part ' + one.dataset.n } "
        "}, 200) "
        "})</script>"
    )
    loaded, _ = await scrolled(page, parts + script)
    seen = await loaded.seen()
    assert [n for n in range(8) if f"Part {n}" not in seen] == []


async def test_lazy_images_are_loaded(page, site):
    """Images marked as lazy have been asked for and are there."""
    site.pages["/"] = "".join(
        f"<div style='height:4000px'><img loading=lazy src=/{n}.png></div>" for n in range(4)
    )
    site.pages |= {f"/{n}.png": PIXEL for n in range(4)}
    loaded, _ = await scrolled(page, "", f"{site.url}/")
    assert await loaded.value("[...document.images].every((image) => image.naturalWidth === 1)")
    assert {f"/{n}.png" for n in range(4)} <= set(site.asked)


async def test_placeholders_that_go_are_not_gathered(page):
    parts = "".join(f"<div style='height:700px'><i>Loading {n}</i></div>" for n in range(8))
    script = (
        "<script>const watch = new IntersectionObserver((all) => { for (const one of all)"
        "if (one.isIntersecting) one.target.innerHTML = '<b>Part</b>' });"
        "for (const one of document.querySelectorAll('div')) watch.observe(one)</script>"
    )
    loaded, result = await scrolled(page, parts + script)
    assert "Loading" not in await loaded.seen()
    assert result.gathered_rows == 0


async def test_lists_within_frames_are_followed(page):
    """A list in a frame is followed like the page's own."""
    inner = (
        "<div id=list></div>"
        + GROWING.replace('"', "'")
        + (
            "<script>addEventListener('scroll', () => { if (list.children.length < 80 && "
            "scrollY + innerHeight > document.documentElement.scrollHeight "
            "- 200) setTimeout(more, 300) })</script>"
        )
    )
    loaded, _ = await scrolled(page, f'<iframe width=600 height=500 srcdoc="{inner}"></iframe>')
    assert await loaded.value("document.querySelector('#list').children.length", frame=1) >= 80


async def test_endless_pages_are_bounded(page):
    """A page that grows for ever is left at a bound, and the result says so."""
    script = "<script>addEventListener('scroll', () => setTimeout(more, 10))</script>"
    loaded = await load(page, f"<div id=list></div>{GROWING}{script}")
    result = await scroll_through(loaded.worlds, 30, loaded.rest)
    assert result.is_endless


async def test_long_pages_are_not_endless(page):
    """A page that is merely long is scrolled up to a bound, and is not called endless."""
    _, result = await scrolled(page, f"<p>Text</p><div style='height:70000px'></div>{LISTENS}")
    assert result.rounds > 40
    assert not result.is_endless


@pytest.mark.parametrize(
    "html",
    [
        "<h1>Title</h1><p>Text</p>",
        TALL,
        f"{TALL}<script>document.title = 'x'; onclick = () => {{}}</script>",
    ],
)
async def test_a_page_that_scrolling_does_not_change_is_not_scrolled(page, html):
    """A short page, and a long one where nothing loads or listens, cost no step."""
    loaded, result = await scrolled(page, html)
    assert (result.rounds, result.is_endless) == (0, False)
    assert await loaded.value("scrollY") == 0


async def test_a_page_that_watches_its_position_by_a_timer_is_scrolled(page):
    """A list that grows by polling is found, although no script listens for scrolling."""
    script = (
        "<script>setInterval(() => { if (list.children.length < 100 &&"
        "scrollY + innerHeight > document.documentElement.scrollHeight - 200) more() }, "
        "100)</script>"
    )
    loaded, _ = await scrolled(page, f"<div id=list></div>{GROWING}{script}")
    assert "Line 99" in await loaded.seen()


async def test_pages_that_scroll_smoothly_are_scrolled_all_the_same(page):
    """A page that turns jumps into glides does not keep us from its end."""
    html = (
        "<style>html{scroll-behavior:smooth}</style><div "
        "style='height:6000px'></div><p id=p>Start</p><script>"
        "new IntersectionObserver((all) => { if (all[0].isIntersecting) p.textContent = 'End' "
        "}).observe(p)</script>"
    )
    loaded, _ = await scrolled(page, html)
    assert "End" in await loaded.seen()


async def test_the_time_is_bounded(page):
    loaded = await load(page, f"<div style='height:30000px'></div>{LISTENS}")
    result = await scroll_through(loaded.worlds, 0.05, loaded.rest)
    assert result.is_cut
    assert await loaded.value("scrollY") == 0


async def test_a_step_that_is_cut_off_is_taken_back(page):
    loaded = await load(page, f"<div style='height:30000px'></div>{LISTENS}")

    class CutOff(FrameWorld):
        async def evaluate(self, function, *arguments):
            value = await super().evaluate(function, *arguments)
            if "down" in arguments:
                raise TimeoutError
            return value

    (world,) = loaded.worlds
    cut_off = CutOff(
        **{field.name: getattr(world, field.name) for field in dataclasses.fields(world)}
    )
    result = await scroll_through([cut_off], 20, loaded.rest)
    assert (result.is_cut, result.rounds) == (True, 0)
    assert await loaded.value("scrollY") == 0


async def test_responses_that_do_not_come_are_waited_for_once(page):
    """A request that hangs holds up one step, not each of them."""
    waits = []

    async def rest(page_time_s):
        waits.append(page_time_s)
        return False

    loaded = await load(page, f"<div style='height:9000px'></div>{LISTENS}")
    result = await scroll_through(loaded.worlds, 20, rest)
    assert result.rounds > 5
    assert len(waits) == 1


ROWS_OF_70_PX = """
<ul id=list style='margin:0;padding:0'></ul><script>
const add = () => { for (let i = 0; i < 20; i++) {
  const row = document.createElement('li'); row.style.height = '65px';
  row.textContent = `Row ${list.children.length}.`; list.append(row);
} };
add();
let isBusy = false;
const grow = (delay, end) => {
  if (isBusy || list.children.length >= end) return;
  isBusy = true;
  setTimeout(() => { isBusy = false; add(); }, delay);
};
</script>
"""
NEAR_THE_END = "scrollY + innerHeight > document.documentElement.scrollHeight - 50"


@pytest.mark.parametrize("delay_ms", [0, 1000])
async def test_a_list_whose_first_rows_fill_a_common_window(page, delay_ms):
    """Twenty rows of 1,400 px do not fit the window of 900 px, so the list gets its events."""
    await page.set_viewport_size({"width": 1100, "height": CaptureSettings().viewport_height_px})
    script = f"<script>onscroll = () => {{ if ({NEAR_THE_END}) grow({delay_ms}, 200) }}</script>"
    loaded, result = await scrolled(page, ROWS_OF_70_PX + script)
    seen = await loaded.seen()
    assert [n for n in range(200) if f"Row {n}." not in seen] == []
    assert not result.is_endless


# How a list shows the rows in view: it makes them, or moves the elements that it has.
LISTS = {
    "made": (
        "<div id=list style='height:10000px;position:relative'></div>",
        "const show = () => { const first = Math.floor(TOP / 40); list.innerHTML = '';"
        "for (let i = Math.max(first, 0); i < Math.min(250, first + COUNT); i++)"
        "list.insertAdjacentHTML('beforeend',"
        "`<p style='position:absolute;top:${i * 40}px'>Row ${i}.</p>`) };",
    ),
    "reused": (
        "<table style='height:10000px;position:relative;display:block'><tbody "
        "id=list></tbody></table>",
        "const rows = [...Array(COUNT)].map((_, n) => {"
        " const row = document.createElement('tr'); row.innerHTML = '<td></td><td></td>';"
        " row.style.cssText = 'position:absolute;height:40px'; list.append(row); return row; });"
        "const show = () => { const first = Math.floor(TOP / 40); rows.forEach((row, n) => {"
        " const i = Math.min(first + n, 249); row.style.top = `${i * 40}px`;"
        " row.cells[0].textContent = `Row ${i}.`; const number = row.cells[1];"
        " number.firstChild ? number.firstChild.data = `No ${i}` : number.textContent = `No ${i}` "
        "}) };",
    ),
}


@pytest.mark.parametrize("is_pane", [True, False])
@pytest.mark.parametrize("rows", LISTS)
async def test_rows_that_go_out_of_view_are_gathered(page, rows, is_pane):
    """A list that has only the rows in view is read in full, each row once and in order."""
    html, script = LISTS[rows]
    if is_pane:
        html = f"<div id=pane style='height:400px;overflow:auto'>{html}</div>"
    names = ("pane.scrollTop", "12", "pane") if is_pane else ("scrollY", "45", "window")
    script += "TARGET.addEventListener('scroll', show); show()"
    for mark, value in zip(("TOP", "COUNT", "TARGET"), names, strict=True):
        script = script.replace(mark, value)
    loaded, result = await scrolled(page, f"{html}<script>{script}</script><p>End</p>")
    seen = await loaded.seen()
    assert [n for n in range(250) if seen.count(f"Row {n}.") != 1] == []
    assert result.gathered_rows > 200
    if rows == "made":
        assert seen.index("Row 99.") < seen.index("Row 240.")
        again = await scroll_through(loaded.worlds, 20, loaded.rest)
        assert again.gathered_rows == 0


async def test_a_clock_is_no_list(page):
    """Text that changes by itself while the page is scrolled is not gathered."""
    script = "<script>setInterval(() => { for (const one of document.querySelectorAll('li'))"
    script += " one.textContent = `${Math.round(performance.now())} ms` }, 50)</script>"
    clocks = "<ul><li>a</li><li>b</li><li>c</li><li>d</li></ul>"
    loaded, result = await scrolled(
        page, f"{clocks}<div style='height:9000px'></div>{LISTENS}{script}"
    )
    assert result.gathered_rows == 0
    assert (await loaded.seen()).count(" ms") == 4


WATCHED = (
    "<style>p { opacity: 0; transition: opacity .5s }</style><script>onload = () => {"
    "const watch = new IntersectionObserver((all) => {"
    " for (const one of all) one.target.style.opacity = FADE });"
    "for (const one of document.querySelectorAll('p')) watch.observe(one) }</script>"
)
FADES = {
    "and stays": WATCHED.replace(
        "FADE", "one.isIntersecting || one.target.style.opacity === '1' ? 1 : 0"
    ),
    "and fades out again": WATCHED.replace("FADE", "one.isIntersecting ? 1 : 0"),
    "by a view timeline": "<style>@keyframes in { from { opacity: 0 } to { opacity: 1 } }"
    "p { animation: in linear both; animation-timeline: view() }</style>",
}


PARTS = "".join(f"<p style='margin:900px 0'>Part {n}.</p>" for n in range(9))


@pytest.mark.parametrize("name", FADES)
async def test_text_that_fades_in_while_scrolling_is_visible(page, name):
    loaded, _ = await scrolled(page, FADES[name] + PARTS + "<div style='opacity:0'>Hidden</div>")
    seen = await loaded.seen()
    assert [n for n in range(9) if f"Part {n}." not in seen] == []
    assert "Hidden" not in seen


def is_painter(pid):
    """Tell whether this is the browser's process that paints for all its pages."""
    return "--type=gpu-process" in Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8")


FADING = FADES["and stays"] + PARTS


@pytest.mark.parametrize(
    ("html", "frame"), [(FADING, 0), (f'<iframe height=900 srcdoc="{escape(FADING)}"></iframe>', 1)]
)
async def test_a_browser_that_paints_late_is_waited_for(page, html, frame):
    """On a busy machine a page's observers are told of all its parts too."""
    loaded = await load(page, html)
    # Of all browsers that this process has started.
    painters = [pid for pid in descendants(os.getpid()) if is_painter(pid)]
    assert painters
    for painter in painters:
        os.kill(painter, signal.SIGSTOP)
        asyncio.get_running_loop().call_later(1.5, os.kill, painter, signal.SIGCONT)
    await scroll_through(loaded.worlds, 20, loaded.rest)
    seen = await loaded.seen(frame)
    assert [n for n in range(9) if f"Part {n}." not in seen] == []
