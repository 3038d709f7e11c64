"""Numbers that count up are read, and pictured, once they have come to their end."""

import pytest
import pytest_asyncio
from capture.shared_browser import capturing
from capture.small_site import SmallSite

from mind2web2.capture.models import NetworkSettings

RUNS = {
    "by time stamp": (
        "let t0; requestAnimationFrame(function f(t) { t0 ??= t; if (show((t - t0) / 2000) < 1) "
        "requestAnimationFrame(f) })"
    ),
    "by clock": (
        "const t0 = performance.now(); (function f(t) { if (show((t - t0) / 2000) < 1) "
        "requestAnimationFrame(f) })(t0)"
    ),
    "by date": (
        "const t0 = Date.now(); (function f() { if (show((Date.now() - t0) / 4500) < 1) "
        "requestAnimationFrame(f) })()"
    ),
    "by frames": (
        "let k = 0; requestAnimationFrame(function f() { if (show(++k / 100) < 1) "
        "requestAnimationFrame(f) })"
    ),
}
STARTS = {
    "in view": (
        "const io = new IntersectionObserver((es) => es.forEach((e) => { if (e.isIntersecting) { "
        "io.unobserve(e.target); run(e.target) } })); all.forEach((e) => io.observe(e))"
    ),
    "at load": "all.forEach(run)",
    "on scroll": (
        "let done = false; addEventListener('scroll', () => { if (!done && "
        "all[0].getBoundingClientRect().top < innerHeight) { done = true; all.forEach(run) } })"
    ),
}


def counting(run, start, first):
    """A page whose two numbers end at 48,210 and 312."""
    numbers = [
        f"<b class=c data-to={to}>{first or f'{to:,}'}</b> {what}"
        for to, what in ((48210, "people on"), (312, "trips."))
    ]
    show = (
        "const show = (share) => { const p = Math.min(1, share); el.textContent = "
        "Math.round(el.dataset.to * p).toLocaleString('en'); return p }"
    )
    return (
        f"<h1>Our year</h1><div style=height:1600px></div><p>We carried {' '.join(numbers)}</p>"
        f"<script>const all = document.querySelectorAll('.c'); "
        f"function run(el) {{ {show}; {RUNS[run]} }} {STARTS[start]}</script>"
    )


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def site_and_manager(browser):
    with SmallSite() as site:
        network = NetworkSettings(host_map={"www.counting.example": ("127.0.0.1", site.port)})
        async with capturing(browser, network) as manager:
            yield site, manager


@pytest.mark.parametrize(
    ("run", "start", "first"),
    [
        *((run, start, "0") for run in RUNS for start in STARTS),
        # The HTML has the right numbers.
        *(("by time stamp", start, "") for start in STARTS),
    ],
)
async def test_numbers_that_count_up_are_read_at_their_end(site_and_manager, run, start, first):
    site, manager = site_and_manager
    site.pages["/year"] = counting(run, start, first)
    page = await manager.capture("http://www.counting.example/year")
    assert "We carried 48,210 people on 312 trips." in page.text


async def test_numbers_in_closed_shadow_roots_count_to_their_end(site_and_manager):
    site, manager = site_and_manager
    show = "const show = (p) => { el.textContent = Math.round(48210 * Math.min(1, p)); return p }"
    site.pages["/shadow"] = (
        "<h1>Our year</h1><x-n></x-n><script>customElements.define('x-n', class extends "
        "HTMLElement { connectedCallback() { const el = this.attachShadow({mode: 'closed'})"
        f".appendChild(document.createElement('p')); {show}; const t0 = Date.now(); (function f() "
        "{ if (show((Date.now() - t0) / 9000) < 1) requestAnimationFrame(f) })() } })</script>"
    )
    page = await manager.capture("http://www.counting.example/shadow")
    assert "48210" in page.text
