"""One image shows all of a page, and nothing covers anything."""

from io import BytesIO

import pytest
from capture.loaded import load, named_cases
from PIL import Image

from mind2web2.capture.models import CaptureSettings
from mind2web2.capture.page.screenshot import take_screenshot

SETTINGS = CaptureSettings()
RED, GREEN, BLUE = (255, 0, 0), (0, 128, 0), (0, 0, 255)


async def shot(page, html, settings=SETTINGS):
    """Return the screenshot of HTML as an image."""
    loaded = await load(page, f"<!doctype html><style>body{{margin:0}}</style>{html}")
    jpeg = await take_screenshot(loaded.session, loaded.worlds, settings)
    return None if jpeg is None else Image.open(BytesIO(jpeg)).convert("RGB")


def patch(colour, height=200, more=""):
    """Return a block of one colour."""
    return f"<div style='background:{colour};height:{height}px;{more}'></div>"


def is_near(pixel, colour):
    """Tell whether a pixel has a colour, but for what compression did to it."""
    return all(abs(one - other) < 40 for one, other in zip(pixel, colour, strict=True))


def share(image, colour, box=None):
    """Return the share of a colour in a part of an image."""
    part = (image.crop(box) if box else image).resize((110, 200), Image.Resampling.NEAREST)
    pixels = [part.getpixel((x, y)) for x in range(part.width) for y in range(part.height)]
    return sum(is_near(pixel, colour) for pixel in pixels) / len(pixels)


async def test_the_whole_page_is_shown(page):
    """The image is as wide as the settings say and as high as the page."""
    image = await shot(page, patch("red", 1000) + patch("blue", 2000))
    assert image.size == (1100, 3000)
    assert is_near(image.getpixel((500, 500)), RED)
    assert is_near(image.getpixel((500, 2950)), BLUE)


async def test_the_height_is_bounded(page):
    """A page higher than the settings allow is shown up to there."""
    image = await shot(
        page,
        "<h1>Title</h1>" + patch("red", 30_000),
        CaptureSettings(max_screenshot_height_px=4000),
    )
    assert image.size == (1100, 4000)


@pytest.mark.parametrize("html", named_cases("pane_cases"))
async def test_panes_show_all_they_hold(page, html):
    image = await shot(page, html.replace("{panes}", patch("red", 2000) + patch("blue")))
    assert image.height >= 1700
    assert share(image, BLUE) > 0.03


async def test_what_follows_a_pane_is_not_covered_by_it(page):
    """A pane that was made higher pushes down what is below it."""
    html = f"<div style='height:400px;overflow:auto'>{patch('red', 2000)}</div>{patch('blue', 300)}"
    image = await shot(page, html)
    assert image.height == 2300
    assert is_near(image.getpixel((500, 1900)), RED)
    assert is_near(image.getpixel((500, 2200)), BLUE)


async def test_menus_beside_the_content_stay_short(page):
    """A navigation that scrolls for itself does not make the image longer."""
    html = (
        "<div style='display:flex'><nav style='height:1000px;width:200px;"
        f"overflow:auto'>{patch('red', 9000)}</nav><main "
        f"style='flex:1'>{patch('blue', 1500)}</main></div>"
    )
    assert (await shot(page, html)).height == 1500


async def test_headers_that_stay_do_not_repeat_or_cover(page):
    """A header that stays in place is shown once, at the top."""
    html = (
        f"<header style='position:fixed;top:0;left:0;right:0;height:80px;background:red'></header>"
        f"<div style='height:80px'></div>{patch('blue', 3000)}"
    )
    image = await shot(page, html)
    assert share(image, RED, (0, 0, 1100, 80)) > 0.9
    assert share(image, BLUE, (0, 90, 1100, 3080)) > 0.99


async def test_bars_at_the_bottom_cover_nothing(page):
    """A bar at the window's lower edge is shown behind the end of the page."""
    html = (
        f"{patch('blue', 3000)}<div style='position:fixed;bottom:0;left:0;right:0;height:100px;"
        f"background:red'></div>"
    )
    image = await shot(page, html)
    assert image.height == 3100
    assert share(image, BLUE, (0, 0, 1100, 2990)) > 0.99
    assert share(image, RED, (0, 3010, 1100, 3100)) > 0.9


async def test_sticky_rows_stay_where_they_belong(page):
    """A sticky row is shown in its place and covers no other."""
    html = f"{patch('blue', 1000)}{patch('red', 100, 'position:sticky;top:0;bottom:0')}{patch('green', 2000)}"
    image = await shot(page, html)
    assert is_near(image.getpixel((500, 1050)), RED)
    assert share(image, GREEN, (0, 1110, 1100, 3100)) > 0.99


async def test_wide_tables_are_shown_to_their_right_edge(page):
    """A table somewhat wider than the window is scaled until it fits."""
    row = "<tr>" + "".join(f"<td style='min-width:200px'>Cell {n}</td>" for n in range(7)) + "</tr>"
    last = "<tr><td colspan=6>Sum</td><td style='background:red;min-width:200px'>Total</td></tr>"
    html = f"<div style='overflow-x:auto'><table>{row * 20}{last}</table></div>"
    image = await shot(page, html)
    assert image.width == 1100
    assert share(image, RED) > 0.001


async def test_decoration_beyond_the_edge_does_not_shrink_the_page(page):
    html = (
        f"{patch('blue', 1000)}<div style='position:absolute;"
        f"left:1000px;top:0;width:600px;height:50px'></div>"
    )
    assert (await shot(page, html)).size == (1100, 1400)


async def test_animations_are_shown_at_their_end(page):
    html = (
        "<style>@keyframes in{from{opacity:0}to{opacity:1}}</style>"
        f"<h1>Title</h1>{patch('red', 600, 'animation:in 60s forwards')}"
    )
    assert share(await shot(page, html), RED) > 0.3


@pytest.mark.parametrize(
    ("html", "is_shown"), [("", False), ("<p style='font-size:9px'>Hi</p>", True)]
)
async def test_an_empty_page_has_no_screenshot(page, html, is_shown):
    """An image of a single colour is none; a single short line is not taken for an empty page."""
    assert (await shot(page, html) is not None) is is_shown


async def test_the_page_may_stand_still(chromium):
    """Pictures are decoded and shown while the page's own clock is stopped."""
    page = await chromium.new_page(viewport={"width": 1100, "height": 1400})
    html = (
        '<img width=300 height=300 src="data:image/svg+xml,<svg '
        "xmlns='http://www.w3.org/2000/svg' "
        "width='10' height='10'>"
        "<rect width='10' height='10' fill='red'/></svg>\"><p>Text</p>"
    )
    image = await shot(page, html)
    await page.close()
    assert is_near(image.getpixel((150, 150)), RED)


async def test_sharp_screens_and_wide_windows_make_no_difference(chromium):
    """The image is as wide as the settings say, whatever window and screen the browser has."""
    context = await chromium.new_context(
        viewport={"width": 2200, "height": 1400}, device_scale_factor=2
    )
    image = await shot(await context.new_page(), patch("red", 1000) + patch("blue", 2000))
    await context.close()
    assert image.size == (1100, 1500)
    assert share(image, BLUE, (1000, 600, 1100, 1500)) > 0.9


async def test_large_screenshots_come_each_time(page):
    """The browser does not wait for its own timers while the page's clock is stopped."""
    loaded = await load(page, "<p>Some text that goes on for a while</p>" * 300)
    shots = [await take_screenshot(loaded.session, loaded.worlds, SETTINGS) for _ in range(7)]
    assert None not in shots
