"""What a page folds away is opened by its own controls, and nothing else is."""

import json

import pytest
from capture.loaded import load
from capture.small_site import SmallSite

from mind2web2.capture.page import unfolding
from mind2web2.capture.page.unfolding import unfold


@pytest.fixture(autouse=True)
def _time_for_busy_machines(monkeypatch):
    monkeypatch.setattr(unfolding, "_FINISH_LIMIT_S", 60.0)


@pytest.fixture
def site():
    """A server on loopback."""
    with SmallSite() as running:
        yield running


async def unfolded(page, html):
    """Load HTML, unfold it, and return the loaded page with what was said about it."""
    loaded = await load(page, html)
    return loaded, await unfold(loaded.worlds, 120, loaded.rest)


# What has to be read in the end, and the page.
FOLDED = {
    "details": ("Secret 1", "<details><summary>More</summary><p>Secret 1</p></details>"),
    "details within details": (
        "Secret 1",
        "<details><summary>A</summary><details><summary>B</summary>Secret 1</details></details>",
    ),
    "exclusive details": (
        "Secret 1 Secret 2",
        "<details name=x open><summary>A</summary>Secret 1</details>"
        "<details name=x><summary>B</summary>Secret 2</details>",
    ),
    "details that fetch": (
        "Secret 1",
        "<details id=d><summary>A</summary><p id=p>Loading</p></details><script>"
        "d.ontoggle = () => setTimeout(() => { p.textContent = 'Secret 1' }, 300)</script>",
    ),
    "aria-expanded": (
        "Secret 1",
        '<button aria-expanded=false aria-controls=p onclick="p.hidden=false;'
        "this.setAttribute('aria-expanded',true)\">A</button><div id=p hidden>Secret 1</div>",
    ),
    "question about deleting": (
        "Secret 1",
        '<h3><button aria-expanded=false aria-controls=p onclick="p.hidden=false;'
        "this.setAttribute('aria-expanded',true)\">Delete my "
        "account</button></h3><div id=p hidden>Secret 1</div>",
    ),
    "a restaurant's menu": (
        "Secret 1",
        "<main><button class=menu-card aria-expanded=false "
        "aria-controls=p onclick='p.hidden=false'>Menu</button>"
        "<div id=p hidden>Secret 1</div></main>",
    ),
    "section named like an action": (
        "Secret 1",
        "<button aria-expanded=false aria-controls=p>Order details</button><div id=p hidden>Secret 1</div>",
    ),
    "accordion in a page that is all one form": (
        "Secret 1",
        "<form><input name=q><p>Text of the page, which is longer than what is folded</p>"
        '<button onclick="this.nextElementSibling.hidden=false">'
        "Part</button><div hidden>Secret 1</div></form>",
    ),
    "section that is made when opened": (
        "Secret 1",
        "<div id=a><button aria-expanded=false>A</button></div><script>"
        "a.firstChild.onclick = (e) => { e.target.setAttribute('aria-expanded', true);"
        "setTimeout(() => a.insertAdjacentHTML('beforeend', '<p>Secret 1</p>'), 200) }</script>",
    ),
    "section in a shadow root": (
        "Secret 1",
        "<div id=host></div><script>const root = host.attachShadow({mode: 'open'});"
        "root.innerHTML = '<button aria-expanded=false aria-controls=p>"
        "A</button><div id=p hidden>Secret 1</div>';"
        "root.querySelector('button').onclick = () => root.querySelector('#p').hidden = false</script>",
    ),
    "section in a closed shadow root": (
        "Secret 1",
        "<div id=host></div><script>const root = host.attachShadow({mode: 'closed'});"
        "root.innerHTML = '<button aria-expanded=false aria-controls=p>"
        "A</button><div id=p hidden>Secret 1</div>';"
        "root.querySelector('button').onclick = () => root.querySelector('#p').hidden = false</script>",
    ),
    "Bootstrap's collapse": (
        "Secret 1",
        "<style>.collapse:not(.show){display:none}</style><a href='#c' data-bs-toggle=collapse>A</a>"
        "<div id=c class=collapse>Secret 1</div><script>document.querySelector('a').onclick ="
        "(e) => { e.preventDefault(); c.classList.toggle('show') }</script>",
    ),
    "accordion without a word of ARIA": (
        "Secret 1 Secret 2",
        "<style>.panel{display:none}</style><button class=accordion>"
        "One</button><div class=panel>Secret 1</div>"
        "<button class=accordion>Two</button><div class=panel>Secret 2</div><script>"
        "for (const b of document.querySelectorAll('button')) b.onclick = () =>"
        "{ b.nextElementSibling.style.display = 'block' }</script>",
    ),
    "accordion of height nought": (
        "Secret 1",
        "<style>.panel{max-height:0;overflow:hidden;transition:max-height .3s}</style>"
        "<h3 style='cursor:pointer'>One</h3><div class=panel>Secret 1</div><script>"
        "document.querySelector('h3').onclick = (e) => { "
        "e.target.nextElementSibling.style.maxHeight = '300px' }"
        "</script>",
    ),
    "accordion of which one part is open at a time": (
        "Secret 1 Secret 2 Secret 3",
        "".join(
            f"<h3><button aria-expanded={str(n == 1).lower()} aria-controls=p{n}>Part {n}</button></h3>"
            f"<div id=p{n} {'' if n == 1 else 'hidden'}>Secret {n}</div>"
            for n in (1, 2, 3)
        )
        + "<script>const all = [...document.querySelectorAll('button')]; "
        "for (const b of all) b.onclick = () => {"
        "for (const o of all) { const on = o === b; o.setAttribute('aria-expanded', on);"
        "document.getElementById(o.getAttribute('aria-controls')).hidden = !on } }</script>",
    ),
    "accordion that unmounts what it closes": (
        "Secret 1 Secret 2 Secret 3 Secret 4 Secret 5 Secret 6",
        "<div id=app></div><script>let open = 1; const show = () => { app.innerHTML = ''; for (const n of "
        "[1, 2, 3, 4, 5, 6]) {"
        "const b = document.createElement('button'); b.textContent = 'Part ' + n;"
        "b.setAttribute('aria-expanded', open === n); b.onclick = () => { open = n; show() }; app.append(b);"
        "if (open === n) app.insertAdjacentHTML('beforeend', `<section>"
        "<p>Secret ${n}</p></section>`) } }; show()"
        "</script>",
    ),
    "accordion whose sentences are in pieces": (
        "Secret1 Secret2 Secret3",
        "<div id=app></div><script>let open = 1; const show = () => { app.textContent = ''; for (const n "
        "of [1, 2, 3]) {"
        "const b = document.createElement('button'); b.append('Part ', `${n}`); app.append(b);"
        "b.setAttribute('aria-expanded', open === n); b.onclick = () => { open = n; show() };"
        "if (open === n) { const p = document.createElement('p'); "
        "p.append('Secret', `${n}`); app.append(p) } } };"
        "show()</script>",
    ),
    "section that slides open frame by frame": (
        "Secret 1",
        "<style>.p{height:0;overflow:hidden}</style><button>A</button><div class=p>Secret 1</div><script>"
        "document.querySelector('button').onclick = (e) => { const begun = Date.now(); const slide = () => {"
        "const done = Math.min((Date.now() - begun) / 400, 1); e.target.nextElementSibling.style.height ="
        "`${done * 50}px`; if (done < 1) requestAnimationFrame(slide) }; slide() }</script>",
    ),
    "tab that is a link to what it loads": (
        "Secret 1 Secret 2",
        "<ul role=tablist><li role=tab aria-selected=true aria-controls=p1><a href='#p1'>A</a></li>"
        "<li role=tab aria-controls=p2><a id=a href='/part'>B</a></li></ul><div id=p1>Secret 1</div>"
        "<div id=p2 hidden></div><script>a.onclick = (e) => { e.preventDefault(); p2.textContent = "
        "'Secret 2' }</script>",
    ),
    "tab panels": (
        "Secret 1 Secret 2",
        "<div role=tablist><button role=tab aria-selected=true aria-controls=p1>A</button>"
        "<button role=tab aria-selected=false aria-controls=p2>B</button></div>"
        "<div id=p1 role=tabpanel>Secret 1</div><div id=p2 role=tabpanel hidden>Secret 2</div>",
    ),
    "tab panels that load when chosen": (
        "Secret 1 Secret 2",
        "<div role=tablist><button role=tab aria-selected=true aria-controls=p1>A</button>"
        '<button role=tab aria-selected=false aria-controls=p2 onclick="setTimeout(() =>'
        "{ p2.textContent = 'Secret 2' }, 300)\">B</button></div>"
        "<div id=p1 role=tabpanel>Secret 1</div><div id=p2 role=tabpanel hidden></div>",
    ),
    "tabs that share a panel": (
        "Secret 1 Secret 2 Secret 3",
        "<div role=tablist><button role=tab aria-selected=true>A</button><button role=tab "
        "aria-selected=false>B</button>"
        "<button role=tab aria-selected=false>C</button></div><div id=p role=tabpanel>Secret 1</div><script>"
        "const all = [...document.querySelectorAll('button')]; all.forEach((b, i) => b.onclick = () => {"
        "all.forEach((o) => o.setAttribute('aria-selected', o === b)); p.textContent = 'wait';"
        "setTimeout(() => { p.textContent = 'Secret ' + (i + 1) }, 200) })</script>",
    ),
    "tabs without a word of ARIA": (
        "Secret 1 Secret 2",
        "<ul class=tabs><li class=active><a href='#t1'>A</a></li><li><a href='#t2'>B</a></li></ul>"
        "<div id=t1>Secret 1</div><div id=t2 style='display:none'>Secret 2</div>",
    ),
    "tabs by name in a handler": (
        "Secret 1 Secret 2",
        "<div><button onclick=\"show('Rome')\">R</button><button onclick=\"show('Oslo')\">O</button></div>"
        "<div id=Rome class=c>Secret 1</div><div id=Oslo class=c style='display:none'>Secret 2</div><script>"
        "function show(id) { for (const c of document.querySelectorAll('.c'))"
        "c.style.display = c.id === id ? '' : 'none' }</script>",
    ),
    "show more": (
        "Secret 1",
        "<p>Intro</p><button onclick=\"this.insertAdjacentHTML('beforebegin', '<p>Secret 1</p>');"
        'this.remove()">Show more</button>',
    ),
    "weiterlesen": (
        "Secret 1",
        "<p id=t>Intro<span hidden> Secret 1</span></p><a href='#' onclick=\"t.lastChild.hidden = false\">"
        "Weiterlesen …</a>",
    ),
    "load more, three times": (
        "Item 4",
        '<ul id=l><li>Item 1</ul><button id=b onclick="setTimeout(() => { const n = l.children.length + 1;'
        "l.insertAdjacentHTML('beforeend', '<li>Item ' + n); if (n === "
        '4) b.remove() }, 200)">Load more</button>',
    ),
    "text cut by a read more button": (
        "Line 9",
        "<div style='max-height:60px;overflow:hidden'>"
        + "".join(f"<p>Line {n}</p>" for n in range(10))
        + "</div><button>Read more</button>",
    ),
    "checkbox that opens by style alone": (
        "Secret 1",
        "<style>.c{display:none}#k:checked~.c{display:block}</style><input type=checkbox id=k hidden>"
        "<label for=k style='cursor:pointer'>Section A</label><div class=c>Secret 1</div>",
    ),
    "section hidden until it is searched for": (
        "Secret 1",
        "<h2>Terms</h2><div hidden=until-found>Secret 1</div>",
    ),
    "link that opens with a press on the pointer": (
        "Secret 2",
        "<div role=tablist><button role=tab aria-selected=true>"
        "A</button><button role=tab id=b>B</button></div>"
        "<div id=p role=tabpanel>Secret 1</div><script>b.onmousedown = () => { p.textContent = 'Secret 2' };"
        "</script>",
    ),
}


@pytest.mark.parametrize("case", FOLDED)
async def test_what_a_control_opens_can_be_read(page, case):
    """Every part that its own control opens can be seen afterwards, whatever the control looks like."""
    expected, html = FOLDED[case]
    words = expected.replace(" Secret", "|Secret").split("|")
    loaded = await load(page, html)
    before = (await loaded.seen()).replace(" | ", "")
    await unfold(loaded.worlds, 120, loaded.rest)
    seen = (await loaded.seen()).replace(" | ", "")
    assert [word for word in words if word not in before] != []
    assert [word for word in words if word not in seen] == []


# What must never be read, and the page.
KEPT_SHUT = {
    "hidden text without a control": (
        "Trap",
        "<p>Text</p><div hidden>Trap</div><div style='display:none'>Trap</div>",
    ),
    "hidden text within an opened section": (
        "Trap",
        "<details><summary>A</summary>Text<span hidden>Trap</span></details>",
    ),
    "hidden text within a tab panel": (
        "Trap",
        "<div role=tablist><button role=tab aria-selected=true aria-controls=p1>A</button>"
        "<button role=tab aria-controls=p2>B</button></div><div id=p1>One</div>"
        "<div id=p2 hidden>Two<p style='display:none'>Trap</p></div>",
    ),
    "menu": (
        "Trap",
        "<nav><button aria-expanded=false aria-controls=m onclick='m.hidden=false'>Products</button>"
        "<ul id=m hidden><li>Trap</ul></nav>",
    ),
    "menu button": (
        "Trap",
        (
            "<button aria-expanded=false aria-controls=m onclick='m.hidden=false'>Menu</button><ul id=m "
            "hidden><li>Trap</ul>"
        ),
    ),
    "popup": (
        "Trap",
        "<button aria-expanded=false aria-haspopup=menu onclick='m.hidden=false'>Sort</button>"
        "<ul id=m hidden><li>Trap</ul>",
    ),
    "search in the page's header": (
        "Trap",
        (
            "<header><button aria-expanded=false onclick='s.hidden=false'>Find</button><div id=s hidden>"
            "Trap</div></header>"
        ),
    ),
    "drop-down over the page": (
        "Trap",
        "<button onclick=\"m.style.display='block'\">Options</button>"
        "<div id=m style='display:none;position:absolute'>Trap</div>",
    ),
    "purchase": (
        "Trap",
        "<button onclick='t.hidden=false' aria-expanded=false>Buy now</button><p id=t hidden>Trap</p>",
    ),
    "deletion": (
        "Trap",
        "<button onclick=\"document.body.innerHTML='Trap'\" aria-expanded=false>Delete</button>",
    ),
    "form": (
        "Trap",
        "<form onsubmit=\"document.body.innerHTML='Trap'; return false\"><input name=q>"
        "<button type=submit aria-expanded=false>Show more</button></form>",
    ),
    "photos": ("Trap", "<button onclick=\"document.body.innerHTML='Trap'\">View all photos</button>"),
    "plain button": ("Trap", "<button onclick=\"document.body.innerHTML='Trap'\">Recalculate</button>"),
    "disabled control": (
        "Trap",
        (
            "<button aria-expanded=false aria-disabled=true "
            "onclick='t.hidden=false'>A</button><p id=t hidden>Trap</p>"
        ),
    ),
    "text behind a link": (
        "Trap",
        "<p>By <a href='/user'>Joe</a><span style='display:none'>Trap</span></p>"
        "<div><a href='/x'>Details</a></div><div style='display:none'>Trap</div>",
    ),
    "section of a disabled control": (
        "Trap",
        "<button aria-expanded=false aria-controls=p disabled>A</button><div id=p hidden>Trap</div>",
    ),
    "dialog": (
        "Trap",
        (
            "<button aria-expanded=false aria-controls=d onclick='d.show()'>Size guide</button><dialog id=d>"
            "Trap</dialog>"
        ),
    ),
}


@pytest.mark.parametrize("case", KEPT_SHUT)
async def test_what_no_control_of_the_content_opens_stays_hidden(page, case):
    """Traps, menus, tools of the page and actions with consequences are left alone."""
    trap, html = KEPT_SHUT[case]
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


async def test_what_a_press_closed_is_kept(page):
    """Text that vanishes when something else is opened is still there in the end."""
    html = (
        "<div id=box>Price: 12 euros</div><button aria-expanded=false id=b>Terms</button><script>"
        "b.onclick = () => { box.textContent = 'Our terms'; b.setAttribute('aria-expanded', true) }</script>"
    )
    loaded, _ = await unfolded(page, html)
    seen = await loaded.seen()
    assert "Price: 12 euros" in seen
    assert "Our terms" in seen


async def test_panels_say_which_tab_they_belong_to(page):
    """Beside each panel stands its tab's name, so that two prices can be told apart."""
    html = (
        "<div role=tablist><button role=tab aria-selected=true aria-controls=p1>Monthly</button>"
        "<button role=tab aria-selected=false aria-controls=p2>Yearly</button></div>"
        "<div id=p1>12 euros</div><div id=p2 hidden>99 euros</div>"
    )
    loaded, _ = await unfolded(page, html)
    assert (await loaded.seen()).endswith("Monthly | 12 euros | Yearly | 99 euros")


async def test_what_tabs_with_one_panel_hold_can_be_told_apart(page):
    """Where tabs take turns in one panel, each content stands behind its tab's name."""
    html = (
        "<div role=tablist><button role=tab aria-selected=true>Monthly</button><button role=tab>"
        "Yearly</button></div>"
        "<p id=p>12 euros</p><script>const all = [...document.querySelectorAll('button')];"
        "all.forEach((b, i) => b.onclick = () => { all.forEach((o) => "
        "o.setAttribute('aria-selected', o === b));"
        "p.textContent = ['12 euros', '99 euros'][i] })</script>"
    )
    loaded, _ = await unfolded(page, html)
    assert (await loaded.seen()).endswith("Yearly | 99 euros | Monthly | 12 euros")


def taking_turns(contents, controls="", into="p"):
    """Return tabs by name whose contents take turns in one element."""
    tabs = "".join(
        f"<button role=tab {controls} aria-selected={str(not number).lower()}>{name}</button>"
        for number, name in enumerate(contents)
    )
    return (
        f"<div role=tablist>{tabs}</div><div id={into} role=tabpanel></div><script>{{"
        f"const panel = document.querySelector('#{into}'), all = [...panel.previousElementSibling.children];"
        f"const contents = {json.dumps(list(contents.values()))};"
        "all.forEach((b, i) => b.onclick = () => { panel.innerHTML = contents[i];"
        "all.forEach((o) => o.setAttribute('aria-selected', o === b)) }); all[0].click() }</script>"
    )


@pytest.mark.parametrize("role", ["role=tabpanel", ""])
async def test_tables_that_take_turns_keep_their_heads(page, role):
    """Each table is kept as a whole, cells that all of them have included."""

    def fees(*prices):
        rows = zip(("Paris", "Rome", "Oslo"), prices, strict=True)
        cells = "".join(f"<tr><td>{city}</td><td>{price}</td></tr>" for city, price in rows)
        return f"<table><tr><th>City</th><th>Fee</th></tr>{cells}</table>"

    html = taking_turns({"Jan": fees(10, 20, 30), "Feb": fees(11, 20, 31)}).replace("role=tabpanel", role)
    loaded, _ = await unfolded(page, html)
    assert "Feb | City | Fee | Paris | 11 | Rome | 20 | Oslo | 31" in await loaded.seen()


async def test_cards_that_change_keep_their_names(page):
    """What changes in several cards at once is kept together with what does not."""

    def cards(*prices):
        pairs = zip(("Pro", "Team"), prices, strict=True)
        return "".join(f"<div><h3>{name}</h3><p>{price}</p></div>" for name, price in pairs)

    html = taking_turns({"Monthly": cards("10 euros", "20 euros"), "Yearly": cards("100 euros", "200 euros")})
    loaded, _ = await unfolded(page, html)
    assert "Yearly | Pro | 100 euros | Team | 200 euros" in await loaded.seen()


async def test_tabs_that_name_their_common_panel_can_be_told_apart(page):
    """Where every tab names the same panel, the one that is open in the end says whose it is too."""
    contents = {"Monday": "9 to 5", "Tuesday": "closed", "Wednesday": "10 to 4"}
    loaded, _ = await unfolded(page, taking_turns(contents, "aria-controls=q", "q"))
    seen = await loaded.seen()
    assert all(f"{day} | {hours}" in seen for day, hours in contents.items())


async def test_sets_of_tabs_do_not_disturb_each_other(page):
    """Of two sets of tabs on one page, each keeps all that its tabs show."""
    days, ages = {"Monday": "9 to 5", "Tuesday": "closed"}, {"Adults": "7 euros", "Children": "3 euros"}
    loaded, _ = await unfolded(page, taking_turns(days) + taking_turns(ages, into="q"))
    seen = await loaded.seen()
    assert all(f"{name} | {value}" in seen for name, value in (days | ages).items())


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
        f"<p><button aria-expanded=false aria-controls=s{n}>A</button></p><p id=s{n} hidden>Secret {n}.</p>"
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
    """Where there are more tabs than are opened, the result says how many were not."""
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
        "<details><summary>C</summary>3</details><button onclick=\"this.outerHTML = '<p>All of it</p>'\">"
        "Show all</button>"
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
        page, "<iframe srcdoc='<details><summary>A</summary>Secret 1</details>'></iframe>"
    )
    assert "Secret 1" in await loaded.seen(frame=1)
    assert result.summary == ("details: 1",)


async def test_sections_are_fetched_from_the_server(page, site):
    """What a section asks the server for when it is opened has arrived in the end."""
    site.pages["/"] = (
        "<button aria-expanded=false aria-controls=p>A</button><div id=p hidden></div><script>"
        "document.querySelector('button').onclick = async (e) => { "
        "e.target.setAttribute('aria-expanded', true);"
        "p.hidden = false; p.textContent = await (await fetch('/part')).text() }</script>"
    )
    site.pages["/part"] = "Secret 1"
    loaded = await load(page, url=site.url)
    await unfold(loaded.worlds, 120, loaded.rest)
    assert "Secret 1" in await loaded.seen()


async def test_endless_lists_are_bounded(page):
    """A button that always brings more is pressed a limited number of times."""
    html = (
        "<ul id=l></ul><button "
        "onclick=\"l.insertAdjacentHTML('beforeend', '<li>Item ' + l.children.length)\">"
        "Load more</button>"
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


async def test_names_of_fields_do_not_lead_astray(page):
    """Forms whose fields are called like properties of the document are unfolded like others."""
    html = (
        "<img name=body><img name=querySelectorAll><form><input name=parentNode><input name=children>"
        "<input name=style>"
        "<input name=matches><details><summary>A</summary>Secret 1</details></form>"
    )
    loaded, _ = await unfolded(page, html)
    assert "Secret 1" in await loaded.seen()


async def test_what_changes_by_itself_is_not_kept(page):
    """Nothing is kept of a page that nobody pressed anything on."""
    html = (
        "<p id=clock></p><script>let n = 0; setInterval(() => { clock.textContent = `Tick ${n++}` }, "
        "100)</script>"
    )
    loaded = await load(page, html)
    await unfold(loaded.worlds, 120, loaded.rest)
    assert await loaded.value("document.body.innerText.split('Tick').length") == 2


HIDE_BEHIND_BOX = "<style>.s { display: none } :checked ~ .s { display: block } .box { opacity: 0 }</style>"
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
    """Its section is shown beside it, and the page still shows the box as it was."""
    html = "<style>.s { display: none } :checked ~ .s { display: block }</style>"
    html += "<div><input type=checkbox id=b><label for=b>Details</label><p class=s>Depth 80 m.</p></div>"
    loaded, _ = await unfolded(page, html)
    assert "Depth 80 m." in await loaded.seen()
    assert not await loaded.value("document.querySelector('#b').checked")


async def test_tabs_of_radio_buttons_are_all_shown(page):
    """Each tab that a radio button shows is there, the open one in its place."""
    style = "<style>.s { display: none } #r0:checked ~ .s0, #r1:checked ~ .s1 { display: block }"
    style += " #r2:checked ~ .s2 { display: block } input { position: absolute; left: -99px }</style>"
    radios = "".join(
        f"<input type=radio name=r id=r{n} {'' if n else 'checked'}><label for=r{n}>Tab {n}</label>"
        for n in range(3)
    )
    panels = "".join(f"<div class='s s{n}'>Panel {n}.</div>" for n in range(3))
    loaded, _ = await unfolded(page, f"{style}<div>{radios}{panels}</div>")
    seen = await loaded.seen()
    assert [seen.count(f"Panel {n}.") for n in range(3)] == [1, 1, 1]
    assert await loaded.value("document.querySelector('#r0').checked")


async def test_the_menu_behind_a_box_stays_closed(page):
    """A site's menu is no section."""
    html = "<style>.m { display: none } :checked ~ .m { display: block }</style>"
    html += "<input type=checkbox id=b hidden><label for=b class=hamburger>Menu</label>"
    html += "<nav class=m>Home About</nav>"
    loaded, _ = await unfolded(page, html)
    assert "About" not in await loaded.seen()


TELLTALE = "one.nextElementSibling.style.display = one.nextElementSibling.style.display ? '' : 'none'"


@pytest.mark.parametrize("is_exclusive", [False, True])
async def test_heads_that_only_listen_for_clicks_are_pressed(page, is_exclusive):
    """Neither ARIA nor the pointer's shape says that they open a section; the press does."""
    items = "".join(
        f"<div class=h>Question {n}</div><div style='display:none'>Answer {n}.</div>" for n in range(3)
    )
    close = "for (const other of heads) if (other !== one) other.nextElementSibling.style.display = 'none';"
    script = (
        "<script>const heads = document.querySelectorAll('.h'); for (const one of heads)"
        f" one.addEventListener('click', () => {{ {close if is_exclusive else ''} {TELLTALE} }})</script>"
    )
    hidden = "<h3>Title</h3><div style='display:none'>Never shown.</div>"
    loaded, _ = await unfolded(page, items + hidden + script)
    seen = await loaded.seen()
    assert all(f"Answer {n}." in seen for n in range(3))
    assert "Never shown." not in seen
