"""Pages rendered from stored responses: nothing leaves this machine."""

from capture.shared_browser import capturing
from servers.local_http import Answer, LocalHttp

from mind2web2.capture.models import NetworkSettings, StoredResponse

REQUESTS = """<!doctype html><title>Weir</title><p>The weir of Ottermoss was built of oak in 1911.</p>
<img src="{0}/a.png"><iframe src="{0}/frame"></iframe><link rel=stylesheet href="{0}/a.css">
<script>
fetch("{0}/fetch", {{mode: "no-cors"}}).catch(() => 0)
new WebSocket("{0}/socket".replace("http", "ws"))
navigator.sendBeacon("{0}/beacon")
new Worker(URL.createObjectURL(new Blob(["fetch('{0}/worker').catch(() => 0)"])))
setTimeout(() => location = "{0}/elsewhere", 10)
</script>"""


async def test_nothing_is_fetched(browser):
    """Elements, scripts, workers, sockets and redirects reach no address, even if allowed."""
    with LocalHttp(lambda _: Answer(b"secret")) as canary:
        html = REQUESTS.format(canary.url).encode()
        stored = {
            "https://ottermoss.example/weir": StoredResponse(html, {"content-type": "text/html"})
        }
        async with capturing(browser, NetworkSettings(allow_private_network=True)) as manager:
            page = await manager.render("https://ottermoss.example/weir", stored)
            missing = await manager.render("https://ottermoss.example/lock", stored)
        assert canary.requests == []
    assert "built of oak" in page.text
    assert page.screenshot
    record = page.record
    assert (record.final_url, record.title, record.refused) == (
        "https://ottermoss.example/weir",
        "Weir",
        (),
    )
    assert missing.record.kind is None


async def test_a_module_of_another_site_runs(browser):
    """Its response may lack the header that lets other sites use it."""
    stored = {
        "https://ottermoss.example/": StoredResponse(
            b"<p id=a>Loading</p><script type=module src=https://cdn.example/m.js></script>",
            {"content-type": "text/html"},
        ),
        "https://cdn.example/m.js": StoredResponse(
            b"import {text} from './text.js'; a.textContent = text",
            {"content-type": "text/javascript"},
        ),
        "https://cdn.example/text.js": StoredResponse(
            b"export const text = 'The weir is open.'",
            {"content-type": "text/javascript"},
        ),
    }
    async with capturing(browser, NetworkSettings()) as manager:
        page = await manager.render("https://ottermoss.example/", stored)
    assert page.text == "The weir is open."
