"""Answers, pages and judges' words stay text, in both homes; only the user is served."""

import math
import re
import socket
from urllib.parse import urlsplit

import pytest
from patchright.async_api import expect
from viewer.attacks import ATTACKS, WRITTEN_ESCAPE
from viewer.conftest import ask, served
from viewer.made_results import Results, leaf, result

from mind2web2.viewer.catalog import Catalog
from mind2web2.viewer.report import ReportContent, write_report
from mind2web2.viewer.server import Session

AGENT, TASK = "hostile", "attacks"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Return results with every attack as claim, description, reason, address, page and answer."""
    assert len(ATTACKS) >= 60
    made = Results(tmp_path_factory.mktemp("hostile"))
    leaves = []
    for number, attack in enumerate(ATTACKS):
        url = f"https://lake.example/{number}?q={attack[:200]}"
        made.add_page(AGENT, TASK, url, attack)
        leaves.append(
            leaf(
                f"leaf-{number}",
                attack,
                reasoning=attack,
                desc=attack,
                url=url,
                reason=attack,
            )
        )
    text = "\n\n".join(ATTACKS)
    content = result(AGENT, "answer_1", leaves, desc=ATTACKS[0])
    # JSON of other tools may hold them.
    content["extractions"] = [{"values": [math.nan, math.inf, "half \ud83d"]}]
    made.add(content, TASK, text.encode("utf-8", "replace").decode())
    made.summarise(AGENT)
    return made


@pytest.fixture(scope="module")
def homes(results, tmp_path_factory):
    """Yield the addresses of both homes."""
    import asyncio

    path = tmp_path_factory.mktemp("file") / "report.html"
    catalog = Catalog(results.paths)
    asyncio.run(write_report(path, catalog, ReportContent()))
    with served(catalog) as address:
        yield {"server": address, "file": path.as_uri()}


@pytest.mark.parametrize("home", ["server", "file"])
async def test_every_attack_stays_text(page, homes, home):
    """Nothing runs, nothing is asked of other hosts, no element of the attacker's appears."""
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    address = homes[home]
    await page.goto(address)
    base = address.partition("?")[0]
    for view in (
        "#/overview?search=script",
        f"#/answer/{AGENT}/{TASK}/answer_1",
        "#/compare",
    ):
        await page.goto(base + view)
        await expect(page.locator("main h1").first).to_be_visible()
        await _assert_inert(page)
    # Both homes have the same views of a leaf; the file embeds all of its texts at once.
    for number in range(0, len(ATTACKS), 1 if home == "server" else 8):
        await page.goto(f"{base}#/evidence/{AGENT}/{TASK}/answer_1/leaf-{number}")
        await expect(page.locator(".where", has_text=f"leaf {number + 1} of")).to_be_visible()
        await expect(page.locator(".page-text, .beside .notice").first).to_be_visible()
        await _assert_inert(page)
    host = urlsplit(address).netloc
    assert [
        url
        for url in asked
        if not url.startswith(("data:", "blob:", "file:")) and urlsplit(url).netloc != host
    ] == []


@pytest.mark.parametrize("home", ["server", "file"])
async def test_escape_in_a_text_stays_as_written(page, homes, home):
    """The escape does not control text direction, and JSON does not read its backslash."""
    await page.goto(homes[home])
    number = ATTACKS.index(WRITTEN_ESCAPE)
    await page.goto(
        f"{homes[home].partition('?')[0]}#/evidence/{AGENT}/{TASK}/answer_1/leaf-{number}"
    )
    await expect(page.locator("blockquote.claim")).to_have_text(WRITTEN_ESCAPE)


async def _assert_inert(page):
    found = await page.evaluate(
        """() => ({
          attacked: window.attacked === undefined ? 0 : 1,
          foreign: document.querySelectorAll(
            "script, iframe, object, embed, style, link, meta, form, base, math, video, marquee, [data-block]"
              .replaceAll(/(^|, )/g, "$1#app ")).length,
          handlers: [...document.querySelectorAll("#app *")].filter(
            (element) => [...element.attributes].some(({name}) => name.startsWith("on"))).length,
          links: [...document.querySelectorAll("#app a[href]")].map((link) => link.getAttribute("href"))
            .filter((href) => !/^(https?:|#)/.test(href)),
          outside: [...document.querySelectorAll("#app a[href^=http]")].filter(
            (link) => !link.rel.includes("noopener")).length,
          directions: /[\\u202a-\\u202e\\u2066-\\u2069]/.test(document.body.innerText),
        })"""
    )
    assert found == {
        "attacked": 0,
        "foreign": 0,
        "handlers": 0,
        "links": [],
        "outside": 0,
        "directions": False,
    }


def test_file_says_that_it_may_connect_to_nothing(homes):
    from pathlib import Path
    from urllib.request import url2pathname

    text = Path(url2pathname(urlsplit(homes["file"]).path)).read_text(encoding="utf-8")
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)[1]
    assert policy.startswith("default-src 'none'; script-src 'nonce-")
    assert "unsafe" not in policy
    assert "connect-src" not in policy
    scripts = re.findall(r"<script[^>]*>", text)
    assert all("nonce=" in script or "data-block=" in script for script in scripts)
    assert len(scripts) == text.count("</script>")


def test_only_the_session_is_served(homes):
    address = homes["server"]
    port = urlsplit(address).port
    token = address.partition("token=")[2]
    cookie = {"cookie": f"mind2web2_session_{port}={token}"}
    assert ask(address, "/api/overview", cookie)[0] == 200
    assert ask(address, "/api/overview")[0] == 403
    assert ask(address, "/api/overview", {"cookie": f"mind2web2_session_{port}=x"})[0] == 403
    assert ask(address, "/api/overview", cookie | {"host": f"attacker.example:{port}"})[0] == 421
    assert ask(address, "/api/overview", cookie | {"origin": "http://attacker.example"})[0] == 403
    assert ask(address, "/api/overview", cookie | {"origin": "null"})[0] == 403
    assert ask(address, "/api/overview", cookie | {"origin": f"http://localhost:{port}"})[0] == 200


def test_key_leaves_the_address_bar(homes):
    address = homes["server"]
    status, _, answer = ask(address, f"/?{address.partition('?')[2]}")
    assert status == 303
    assert answer.getheader("location") == "/"
    cookie = answer.getheader("set-cookie").lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie


def test_key_of_this_session_counts_beside_an_old_cookie(homes):
    """The viewer was started again at the same port, so that the browser has an old cookie."""
    address = homes["server"]
    old = {"cookie": f"mind2web2_session_{urlsplit(address).port}=of-an-earlier-session"}
    assert ask(address, f"/?{address.partition('?')[2]}", old)[0] == 303
    assert ask(address, "/?token=wrong", old)[0] == 403


def test_a_viewer_for_other_machines_has_this_machines_names(results):
    with served(Catalog(results.paths), host="0.0.0.0") as address:
        port = urlsplit(address).port
        assert {f"{socket.gethostname()}:{port}", f"127.0.0.1:{port}"} <= Session.at(
            "0.0.0.0", port
        ).hosts
        host = {"host": f"{socket.gethostname()}:{port}"}
        assert ask(address, f"/?{address.partition('?')[2]}", host)[0] == 303


@pytest.mark.parametrize(
    "place",
    [
        "agent=..&task=x&answer=y",
        "agent=hostile&task=..%2F..&answer=answer_1",
        "agent=hostile&task=attacks&answer=..",
        "agent=%00&task=x&answer=y",
        "",
    ],
)
def test_names_that_lead_elsewhere_find_nothing(homes, place):
    address = homes["server"]
    cookie = {
        "cookie": f"mind2web2_session_{urlsplit(address).port}={address.partition('token=')[2]}"
    }
    for kind in ("answer", "page", "image", "messages"):
        status, text, _ = ask(
            address,
            f"/api/{kind}?{place}&url=https://x.example/&name=screenshot",
            cookie,
        )
        assert status in (200, 404, 409)
        assert "Traceback" not in text
        assert kind == "page" or status != 200
