"""Folded content is opened by the page's own controls, and nothing else is."""

import json

import pytest
from capture.loaded import load, named_cases

from mind2web2.capture.page import unfolding
from mind2web2.capture.page.unfolding import unfold


@pytest.fixture(autouse=True)
def _time_for_busy_machines(monkeypatch):
    monkeypatch.setattr(unfolding, "_FINISH_LIMIT_S", 60.0)


async def unfolded(page, html):
    """Load HTML, unfold it, and return the loaded page with what was said about it."""
    loaded = await load(page, html)
    return loaded, await unfold(loaded.worlds, 120, loaded.rest)


@pytest.mark.parametrize(("expected", "html"), named_cases("folded_cases"))
async def test_what_a_control_opens_can_be_read(page, expected, html):
    """Every part that its own control opens can be seen afterwards."""
    words = expected.replace(" Secret", "|Secret").split("|")
    loaded = await load(page, html)
    before = (await loaded.seen()).replace(" | ", "")
    await unfold(loaded.worlds, 120, loaded.rest)
    seen = (await loaded.seen()).replace(" | ", "")
    assert [word for word in words if word not in before] != []
    assert [word for word in words if word not in seen] == []


@pytest.mark.parametrize(("trap", "html"), named_cases("kept_shut_cases"))
async def test_text_that_no_control_of_the_content_opens_stays_hidden(page, trap, html):
    """Traps, menus, tools of the page and actions with consequences are left alone."""
    loaded, _ = await unfolded(page, f"<p>Beginning</p>{html}")
    seen = await loaded.seen()
    assert trap not in seen
    assert "Beginning" in seen


async def test_links_are_not_followed(page):
    """A press leads nowhere: neither by a link, nor by a form that a handler wants to send."""
    html = (
        "<a href='/elsewhere'>Read more</a><a href='/other' role=button aria-expanded=false>A</a>"
        "<form action='/sent'><button aria-expanded=false>Details</button></form>"
    )
    loaded, _ = await unfolded(page, html)
    await loaded.rest(1)
    assert await loaded.value("location.href") == "about:blank"


def taking_turns(contents, controls="", into="p"):
    """Return tabs by name whose contents take turns in one element."""
    tabs = "".join(
        f"<button role=tab {controls} aria-selected={str(not number).lower()}>{name}</button>"
        for number, name in enumerate(contents)
    )
    return (
        f"<div role=tablist>{tabs}</div><div id={into} role=tabpanel></div><script>{{"
        f"const panel = document.querySelector('#{into}'), all = "
        "[...panel.previousElementSibling.children];"
        f"const contents = {json.dumps(list(contents.values()))};"
        "all.forEach((b, i) => b.onclick = () => { panel.innerHTML = contents[i];"
        "all.forEach((o) => o.setAttribute('aria-selected', o === b)) }); all[0].click() }</script>"
    )


def fees(*prices):
    """Return a table of fees by city."""
    rows = zip(("Paris", "Rome", "Oslo"), prices, strict=True)
    cells = "".join(f"<tr><td>{city}</td><td>{price}</td></tr>" for city, price in rows)
    return f"<table><tr><th>City</th><th>Fee</th></tr>{cells}</table>"


def cards(*prices):
    """Return cards with prices by name."""
    pairs = zip(("Pro", "Team"), prices, strict=True)
    return "".join(f"<div><h3>{name}</h3><p>{price}</p></div>" for name, price in pairs)


PANELS = (
    "<div role=tablist><button role=tab aria-selected=true aria-controls=p1>Monthly</button>"
    "<button role=tab aria-selected=false aria-controls=p2>Yearly</button></div>"
    "<div id=p1>12 euros</div><div id=p2 hidden>99 euros</div>"
)
DAYS = {"Monday": "9 to 5", "Tuesday": "closed", "Wednesday": "10 to 4"}
FEES = taking_turns({"Jan": fees(10, 20, 30), "Feb": fees(11, 20, 31)})
FEB = "Feb | City | Fee | Paris | 11 | Rome | 20 | Oslo | 31"
TABS = {
    "a panel for each": (PANELS, ["Monthly | 12 euros | Yearly | 99 euros"]),
    "one panel": (
        taking_turns({"Monthly": "12 euros", "Yearly": "99 euros"}).replace(" role=tabpanel", ""),
        ["Yearly | 99 euros | Monthly | 12 euros"],
    ),
    "tables with common cells": (FEES, [FEB]),
    "tables outside of a panel": (FEES.replace("role=tabpanel", ""), [FEB]),
    "cards with common names": (
        taking_turns(
            {
                "Monthly": cards("10 euros", "20 euros"),
                "Yearly": cards("100 euros", "200 euros"),
            }
        ),
        ["Yearly | Pro | 100 euros | Team | 200 euros"],
    ),
    "a panel that every tab names": (
        taking_turns(DAYS, "aria-controls=q", "q"),
        [f"{day} | {hours}" for day, hours in DAYS.items()],
    ),
    "two sets of tabs": (
        taking_turns(DAYS) + taking_turns({"Adults": "7 euros", "Children": "3 euros"}, into="q"),
        [
            "Monday | 9 to 5",
            "Tuesday | closed",
            "Adults | 7 euros",
            "Children | 3 euros",
        ],
    ),
}


@pytest.mark.parametrize("name", TABS)
async def test_contents_of_tabs_can_be_told_apart(page, name):
    """Each content follows its tab's name, so that readers do not confuse two prices."""
    html, expected = TABS[name]
    loaded, _ = await unfolded(page, html)
    seen = await loaded.seen()
    assert [text for text in expected if text not in seen] == []


async def test_sections_made_anew_are_read_once(page):
    """An accordion that makes its controls anew at every press is read in full, each part once."""
    html = (
        "<div id=app></div><script>let open = 0; const show = () => { app.innerHTML = '';"
        "for (const n of [1, 2, 3]) { const b = document.createElement('button');"
        "b.textContent = `Part ${n}`; b.setAttribute('aria-expanded', open === n);"
        "b.setAttribute('aria-controls', `c${n}`);"
        "b.onclick = () => { open = open === n ? 0 : n; show() }; app.append(b);"
        "app.insertAdjacentHTML('beforeend',"
        "`<div id=c${n}>${open === n ? `Secret ${n}` : ''}</div>`) } }; show()</script>"
    )
    loaded, _ = await unfolded(page, html)
    seen = await loaded.seen()
    assert [seen.count(f"Secret {n}") for n in (1, 2, 3)] == [1, 1, 1]


async def test_many_sections_and_tabs_are_opened(page):
    """Four hundred sections and sixty tabs are within the bounds."""
    sections = "".join(
        f"<p><button aria-expanded=false aria-controls=s{n}>A</button></p><p id=s{n} "
        f"hidden>Secret {n}.</p>"
        for n in range(400)
    )
    tabs = "".join(f"<button role=tab aria-controls=t{n}>{n}</button>" for n in range(60))
    panels = "".join(f"<p id=t{n} {'hidden' if n else ''}>Panel {n}.</p>" for n in range(60))
    loaded, result = await unfolded(page, f"{sections}<div role=tablist>{tabs}</div>{panels}")
    seen = await loaded.seen()
    assert [n for n in range(400) if f"Secret {n}." not in seen] == []
    assert [n for n in range(60) if f"Panel {n}." not in seen] == []
    assert not result.is_cut


async def test_tabs_beyond_the_bound_are_reported(page):
    tabs = "".join(f"<button role=tab aria-controls=t{n}>{n}</button>" for n in range(90))
    panels = "".join(f"<p id=t{n} {'hidden' if n else ''}>Panel {n}.</p>" for n in range(90))
    loaded, result = await unfolded(page, f"<div role=tablist>{tabs}</div>{panels}")
    assert "Panel 79." in await loaded.seen()
    assert result.is_cut
    assert result.notes == ("tabs left shut: 10",)


async def test_the_summary_counts_what_was_opened(page):
    """The record says how many of what were opened."""
    html = (
        "<details><summary>A</summary>1</details><details open><summary>B</summary>2</details>"
        "<details><summary>C</summary>3</details><button onclick=\"this.outerHTML = '<p>All of "
        "it</p>'\">Show all</button>"
    )
    _, result = await unfolded(page, html)
    assert result.summary == ("details: 2", "show more: 1")
    assert not result.is_cut


async def test_a_page_with_nothing_folded_stays_as_it_is(page):
    """Nothing is said and nothing is changed where there is nothing to open."""
    html = "<h1>Title</h1><p>Text with a <a href='/x'>link</a></p><button>Send</button>"
    loaded = await load(page, html)
    before = await loaded.value("document.body.innerHTML")
    result = await unfold(loaded.worlds, 120, loaded.rest)
    assert result.summary == ()
    assert await loaded.value("document.body.innerHTML") == before


async def test_frames_are_unfolded_too(page):
    """Sections within frames are opened as those of the page are."""
    loaded, result = await unfolded(
        page,
        "<iframe srcdoc='<details><summary>A</summary>Secret 1</details>'></iframe>",
    )
    assert "Secret 1" in await loaded.seen(frame=1)
    assert result.summary == ("details: 1",)


async def test_endless_lists_are_bounded(page):
    """A button that always brings more is pressed a limited number of times."""
    html = (
        "<ul id=l></ul><button onclick=\"l.insertAdjacentHTML('beforeend', '<li>Item ' + "
        'l.children.length)">Load more</button>'
    )
    loaded, result = await unfolded(page, html)
    assert await loaded.value("document.querySelectorAll('li').length") == 10
    assert result.is_cut
    assert result.notes == ("lists with a button for more left shut: 1",)


async def test_a_page_that_never_rests_is_cut(page):
    """A handler that never returns costs no more than the deadline, and the result says so."""
    html = "<p>Text</p><button aria-expanded=false onclick='for (;;);'>A</button>"
    loaded = await load(page, html)
    result = await unfold(loaded.worlds, 0.3, loaded.rest)
    assert result.is_cut
    await loaded.session.send("Runtime.terminateExecution")


async def test_what_changes_by_itself_is_not_kept(page):
    """Nothing is kept of a page that nobody pressed anything on."""
    html = (
        "<p id=clock></p><script>let n = 0; setInterval(() => { clock.textContent = `Tick ${n++}` "
        "}, "
        "100)</script>"
    )
    loaded = await load(page, html)
    await unfold(loaded.worlds, 120, loaded.rest)
    assert await loaded.value("document.body.innerText.split('Tick').length") == 2


HIDE_BEHIND_BOX = (
    "<style>.s { display: none } :checked ~ .s { display: block } .box { opacity: 0 }</style>"
)
SLIDE = (
    "<style>.s { max-height: 0; overflow: hidden; transition: max-height .4s }"
    " :checked ~ .s { max-height: 500px } .box { display: none }</style>"
)


@pytest.mark.parametrize("style", [HIDE_BEHIND_BOX, SLIDE])
async def test_sections_that_a_hidden_box_shows_are_opened(page, style):
    """A style sheet shows them for a box whose label is the head, without a script."""
    items = "".join(
        f"<li><input class=box type=checkbox id=b{n}><label for=b{n}>Question {n}</label>"
        f"<div class=s>Answer {n}.</div>"
        for n in range(3)
    )
    loaded, result = await unfolded(page, f"{style}<ul>{items}</ul><p class=s>Never shown.</p>")
    seen = await loaded.seen()
    assert all(f"Answer {n}." in seen for n in range(3))
    assert "Never shown." not in seen
    assert result.summary == ("collapsed section: 3",)


async def test_a_box_that_is_to_be_seen_keeps_its_state(page):
    html = "<style>.s { display: none } :checked ~ .s { display: block }</style>"
    html += (
        "<div><input type=checkbox id=b><label for=b>Details</label><p class=s>Depth 80 "
        "m.</p></div>"
    )
    loaded, _ = await unfolded(page, html)
    assert "Depth 80 m." in await loaded.seen()
    assert not await loaded.value("document.querySelector('#b').checked")


async def test_tabs_of_radio_buttons_are_all_shown(page):
    """Each tab that a radio button shows is there, the open one in its place."""
    style = "<style>.s { display: none } #r0:checked ~ .s0, #r1:checked ~ .s1 { display: block }"
    style += (
        " #r2:checked ~ .s2 { display: block } input { position: absolute; left: -99px }</style>"
    )
    radios = "".join(
        f"<input type=radio name=r id=r{n} {'' if n else 'checked'}><label for=r{n}>Tab {n}</label>"
        for n in range(3)
    )
    panels = "".join(f"<div class='s s{n}'>Panel {n}.</div>" for n in range(3))
    loaded, _ = await unfolded(page, f"{style}<div>{radios}{panels}</div>")
    seen = await loaded.seen()
    assert [seen.count(f"Panel {n}.") for n in range(3)] == [1, 1, 1]
    assert await loaded.value("document.querySelector('#r0').checked")
