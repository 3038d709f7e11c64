"""The browser is found, clean and ordinary, restarts after a crash, and leaves no trace."""

import asyncio
import os
import select
import signal
import subprocess
import sys
import textwrap
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from capture.users_browser import users_browser
from fixtures.process_tree import descendants
from patchright.async_api import Error, async_playwright
from servers.hostile_site import http_server
from servers.tcp_server import tcp_server

from mind2web2.capture import browser_process
from mind2web2.capture.browser import Browser
from mind2web2.capture.browser_program import browser_environment, find_browser, has_sandbox
from mind2web2.capture.models import CaptureSettings, NetworkSettings
from mind2web2.capture.network.proxy import FilteringProxy
from mind2web2.errors import BrowserGoneError, MachineError

PAGE = 200, {"Content-Type": "text/html"}, "<title>page</title>"
ANYWHERE = NetworkSettings(allow_private_network=True)


@asynccontextmanager
async def opened(browser, **options):
    """Open a page that may connect to anything; yields the page."""
    async with (
        FilteringProxy(ANYWHERE) as proxy,
        proxy.session(10**9) as session,
        browser.page(session.server_url, **options) as (page, _),
    ):
        yield page


async def crash(page):
    """Crash the whole browser that a page is in."""
    session = await page.context.browser.new_browser_cdp_session()
    with pytest.raises(Error):
        await session.send("Browser.crash")


async def pid_of(page):
    """Return the process id of the browser that a page is in."""
    session = await page.context.browser.new_browser_cdp_session()
    processes = (await session.send("SystemInfo.getProcessInfo"))["processInfo"]
    await session.detach()
    return next(int(process["id"]) for process in processes if process["type"] == "browser")


def install(folder, *names):
    """Put programs that do nothing into a folder."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine without a browser or a screen: its programs, and patchright's browsers."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path / "own"))
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    return tmp_path


SHELL = "own/chromium_headless_shell-1248/chrome-headless-shell-linux64/chrome-headless-shell"
CHROME = "own/chromium-1248/chrome-linux64/chrome"


@pytest.mark.parametrize(
    ("installed", "headless", "headed"),
    [
        ([SHELL, CHROME, "bin/chromium-headless-shell", "bin/chromium"], SHELL, CHROME),
        ([CHROME, "bin/chromium-headless-shell"], CHROME, CHROME),
        (
            ["bin/google-chrome", "bin/chromium", "bin/chromium-headless-shell"],
            "bin/chromium-headless-shell",
            "bin/chromium",
        ),
        (["bin/google-chrome"], "bin/google-chrome", "bin/google-chrome"),
        ([SHELL.replace("1248", "1187"), SHELL, CHROME], SHELL, CHROME),
    ],
)
def test_the_best_browser_is_found(machine, installed, headless, headed):
    """Patchright's own before the system's, the headless shell where no window is needed."""
    install(machine, *installed)
    assert find_browser(True).path == machine / headless
    assert find_browser(False).path == machine / headed


@pytest.mark.parametrize(
    ("installed", "headless", "cures"),
    [
        (
            [],
            True,
            ["apt-get install chromium-headless-shell", "patchright install chromium"],
        ),
        ([], False, ["apt-get install chromium`", "patchright install chromium"]),
        (
            ["bin/chromium-headless-shell"],
            False,
            ["apt-get install chromium`", "--headed"],
        ),
    ],
)
async def test_a_missing_browser_is_said_in_one_line(machine, installed, headless, cures):
    """The error names the ways to get one."""
    install(machine, *installed)
    with pytest.raises(MachineError) as error:
        async with Browser(CaptureSettings(headless=headless)):
            pass
    assert all(cure in str(error.value) for cure in cures)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("uv", "command"), [("", "`patchright install"), ("/u/uv", "`/u/uv run patchright install")]
)
def test_patchright_is_run_as_the_command_was(machine, monkeypatch, uv, command):
    install(machine)
    monkeypatch.setenv("UV", uv)
    monkeypatch.setattr(sys, "argv", ["mind2web2"])
    with pytest.raises(MachineError, match=command):
        find_browser(True)


async def test_a_browser_that_does_not_start_is_named(machine):
    """A program that ends at once is a fault of this machine, for whoever asks for a page."""
    install(machine, "bin/chromium")
    async with Browser(CaptureSettings()) as browser:
        for _ in range(2):
            with pytest.raises(MachineError, match=r"bin/chromium does not start"):
                await browser.start()


@pytest.mark.parametrize(
    ("printed", "headless", "cure"),
    [
        ("Chromium sandboxing failed!", True, r"seccomp=unconfined.*no_sandbox = true"),
        ("Missing X server or $DISPLAY", False, r"leave out --headed, or put xvfb-run before"),
    ],
)
async def test_a_browser_that_names_only_the_fault_is_explained(
    tmp_path, monkeypatch, printed, headless, cure
):
    """The browser says that its sandbox failed, or that a window has nowhere to open."""
    program = tmp_path / ("chromium-headless-shell" if headless else "chromium")
    program.write_text(f"#!/bin/sh\necho '{printed}' >&2; exit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path))
    async with Browser(CaptureSettings(headless=headless)) as browser:
        with pytest.raises(MachineError, match=cure):
            await browser.start()


@pytest.mark.parametrize(
    ("user", "no_sandbox", "expected"),
    [(0, False, False), (1000, False, True), (1000, True, False)],
)
def test_the_sandbox_is_left_out_for_root_or_on_request(monkeypatch, user, no_sandbox, expected):
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert has_sandbox(CaptureSettings(no_sandbox=no_sandbox)) is expected


def test_secrets_are_not_handed_to_the_browser(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("AWS_SECRET_KEY", "secret")
    environment = browser_environment()
    assert "secret" not in environment.values()
    assert environment["PATH"] == os.environ["PATH"]


WITH_ALL_PROCESSES = """
import asyncio, os
from mind2web2.capture.browser import Browser
from mind2web2.capture.models import CaptureSettings
from mind2web2.utils.workers import run_in_worker

async def main():
    await run_in_worker(os.getpid, timeout_s=60)
    async with Browser(CaptureSettings()) as browser:
        await browser.start()
        print("ready", flush=True)
        input()

asyncio.run(main())
"""


def test_no_process_of_a_run_has_its_key():
    environment = os.environ | {"OPENAI_API_KEY": "sk-hidden"}
    with subprocess.Popen(
        [sys.executable, "-c", WITH_ALL_PROCESSES],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    ) as run:
        assert run.stdout.readline() == b"ready\n"
        started = descendants(run.pid)
        seen = []
        for pid in started:
            with suppress(ProcessLookupError, FileNotFoundError):  # it has ended since
                seen.append(Path(f"/proc/{pid}/environ").read_bytes())
        run.communicate(b"\n")
    assert len(seen) > 3
    assert not any(b"sk-hidden" in each for each in seen)


async def test_pages_look_like_an_ordinary_browsers(browser):
    heads = []

    async def serve(reader, writer):
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        body = (
            b"fetch('/from-worker')"
            if "/worker" in heads[-1]
            else b"<script>new SharedWorker('/worker')</script>"
        )
        kind = b"text/javascript" if "/worker" in heads[-1] else b"text/html"
        writer.write(
            b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: %b\r\n\r\n%b" % (kind, body)
        )
        await writer.drain()
        if "/from-worker" in heads[-1]:
            asked.set()

    asked = asyncio.Event()
    async with tcp_server(serve) as site, opened(browser) as page:
        await page.goto(f"http://127.0.0.1:{site.port}/")
        async with asyncio.timeout(10):
            await asked.wait()
        seen = await page.evaluate(
            """[navigator.userAgent, navigator.webdriver, JSON.stringify(navigator.userAgentData),
                navigator.language]"""
        )
    assert seen[1] is False
    assert seen[3] == "en-US"
    assert all("headless" not in str(text).lower() for text in (*heads, *seen))
    assert "Accept-Language: en-US,en;q=0.9" in heads[0]
    assert 'sec-ch-ua: "Not:A-Brand";v="8", "Chromium"' in heads[0]


async def test_the_driver_has_the_patches_of_patchright():
    """Two of its releases came without: automation was announced, and pages saw our scripts."""
    async with async_playwright() as playwright:
        path = find_browser(headless=True).path
        launched = await playwright.chromium.launch(executable_path=path)
        page = await launched.new_page()
        await page.goto("data:text/html,<script>window.own = 1</script>")
        assert await page.evaluate("[navigator.webdriver, window.own]") == [False, None]
        session = await launched.new_browser_cdp_session()
        with pytest.raises(Error, match="--enable-automation not set"):
            await session.send("Browser.getBrowserCommandLine")
        await launched.close()


async def test_every_page_is_clean_and_as_wide_as_asked(browser):
    """Cookies and storage of one page are not another's."""
    async with http_server(lambda _: PAGE) as site:
        seen = []
        for _ in range(2):
            async with opened(browser) as page:
                await page.goto(f"http://127.0.0.1:{site.port}/")
                seen.append(
                    await page.evaluate(
                        "[document.cookie, localStorage.length, innerWidth, screen.width]"
                    )
                )
                await page.evaluate("document.cookie = 'a=b'; localStorage.setItem('a', 'b')")
    assert seen == [["", 0, 1100, 1100]] * 2


async def test_nothing_is_permitted_downloaded_or_opened(browser):
    """No permission is granted, no window opens, and a download ends before it begins."""
    answers = {
        "/": (200, {"Content-Type": "text/html"}, "<a href=/file download>file</a>"),
        "/file": (200, {"Content-Disposition": "attachment"}, "file"),
    }
    async with http_server(answers.__getitem__) as site, opened(browser) as page:
        await page.goto(f"http://127.0.0.1:{site.port}/")
        states = await page.evaluate(
            """Promise.all(["geolocation", "notifications", "camera", "microphone", "clipboard-read"].map(
                name => navigator.permissions.query({name}).then(status => status.state)))"""
        )
        assert set(states) == {"denied"}
        assert await page.evaluate("window.open('/') === null")
        async with page.expect_download() as download:
            await page.click("a")
        assert await (await download.value).failure() is not None
        assert page.context.pages == [page]


async def test_certificates_are_checked_unless_asked_otherwise(browser):
    """A certificate that nobody vouches for stops a page; asked to go on, the browser does."""
    import ssl

    import trustme

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)

    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(
            b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: "
            b"text/html\r\n\r\n<title>page</title>"
        )
        await writer.drain()

    async with tcp_server(serve, ssl=context) as site:
        url = f"https://127.0.0.1:{site.port}/"
        async with opened(browser) as page:
            with pytest.raises(Error, match="ERR_CERT_AUTHORITY_INVALID"):
                await page.goto(url)
        async with opened(browser, ignore_certificate_errors=True) as page:
            await page.goto(url)
            assert await page.title() == "page"


async def test_a_crashed_browser_is_started_once_for_all():
    """Open pages fail at once, and later ones share one new browser."""
    async with Browser(CaptureSettings()) as browser:
        pids = []
        ready = asyncio.Barrier(4)

        async def stay():
            async with opened(browser) as page:
                pids.append(await pid_of(page))
                await ready.wait()
                await asyncio.Event().wait()

        async def end():
            async with opened(browser) as page:
                await ready.wait()
                await crash(page)

        async with asyncio.timeout(30):
            outcomes = await asyncio.gather(
                *(stay() for _ in range(3)), end(), return_exceptions=True
            )
            assert {type(outcome) for outcome in outcomes} == {BrowserGoneError}
            assert len(set(pids)) == 1

            async def visit():
                async with opened(browser) as page:
                    return await pid_of(page)

            after = await asyncio.gather(*(visit() for _ in range(3)))
            assert len(set(after)) == 1
            assert after[0] != pids[0]


async def test_a_dead_driver_is_noticed():
    """The process between us and the browser may die as well."""
    async with Browser(CaptureSettings()) as browser:
        with pytest.raises(BrowserGoneError):
            async with opened(browser) as page:
                os.kill(driver_of(await pid_of(page)), signal.SIGKILL)
                async with asyncio.timeout(20):
                    await asyncio.Event().wait()
        async with opened(browser) as page:
            assert await page.title() == ""


async def test_a_hung_browser_is_ended(monkeypatch):
    """A browser that does not close in time is killed, and its end does not take long."""
    monkeypatch.setattr(browser_process, "CLOSE_TIMEOUT_S", 0.5)
    async with asyncio.timeout(20):
        async with Browser(CaptureSettings()) as browser:
            async with opened(browser) as page:
                pid = await pid_of(page)
                ended = os.pidfd_open(pid)
            os.kill(pid, signal.SIGSTOP)
    assert select.select([ended], [], [], 10)[0]
    os.close(ended)


async def test_an_abandoned_page_is_closed(browser):
    """Cancelled while it opens or while it is open, a page leaves no context behind."""
    async with opened(browser) as watcher:
        contexts = watcher.context.browser.contexts

        async def stay(is_open):
            async with opened(browser):
                is_open.set()
                await asyncio.Event().wait()

        for moments in (0, 1, 3, 10, 30, None):
            is_open = asyncio.Event()
            task = asyncio.create_task(stay(is_open))
            if moments is None:
                await is_open.wait()
            else:
                for _ in range(moments):
                    await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert task.cancelled()
        async with asyncio.timeout(10):
            while len(watcher.context.browser.contexts) > len(contexts):
                async with opened(browser):  # whatever is on its way arrives before this one
                    pass


SCRIPT = textwrap.dedent(
    """
    import asyncio, sys
    from mind2web2.capture.browser import Browser
    from mind2web2.capture.models import CaptureSettings

    async def main():
        async with Browser(CaptureSettings()) as browser, browser.page("socks5://127.0.0.1:9") as (page, _):
            session = await page.context.browser.new_browser_cdp_session()
            processes = (await session.send("SystemInfo.getProcessInfo"))["processInfo"]
            print(next(p["id"] for p in processes if p["type"] == "browser"), flush=True)
            loop, ended = asyncio.get_running_loop(), asyncio.Event()
            loop.add_reader(0, ended.set)
            await ended.wait()

    asyncio.run(main())
    """
)


@pytest.mark.parametrize("way", ["orderly", "crash", "killed"])
async def test_nothing_is_left_behind(way, tmp_path):
    """No process or file is left after the end, a crash, or kill -9."""
    run = await asyncio.create_subprocess_exec(
        sys.executable,
        "-W",
        "ignore",
        "-c",
        SCRIPT,
        env=os.environ | {"TMPDIR": str(tmp_path)},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    async with asyncio.timeout(30):
        pid = int(await run.stdout.readline())
        ends = [os.pidfd_open(pid), os.pidfd_open(driver_of(pid))]
        assert list(tmp_path.iterdir())
        if way == "crash":
            os.kill(pid, signal.SIGKILL)
        elif way == "killed":
            run.kill()
        await run.communicate(b"")
    for end in ends:
        assert select.select([end], [], [], 10)[0]
        os.close(end)
    assert list(tmp_path.iterdir()) == []


def driver_of(pid):
    """Return the process that started a browser, possibly by way of a script."""
    while b"run-driver" not in Path(f"/proc/{pid}/cmdline").read_bytes():
        pid = int(
            Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1]
        )
        assert pid > 1
    return pid


async def test_the_users_own_browser_is_used_and_left_running(tmp_path):
    seen = []

    async def serve(reader, writer):
        seen.append("sid=users" in (await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(
            b"HTTP/1.1 200 OK\r\nConnection: close\r\nSet-Cookie: sid=users\r\nContent-Length: "
            b"0\r\n\r\n"
        )
        await writer.drain()

    async with tcp_server(serve) as site, users_browser(tmp_path) as address:
        for _ in range(2):
            async with Browser(CaptureSettings(cdp_url=address)) as browser:
                async with browser.page("socks5://127.0.0.1:9") as (page, session):
                    await page.goto(f"http://127.0.0.1:{site.port}/")
                    assert await page.evaluate("innerWidth") == 1100
                    assert (await session.send("Page.getFrameTree"))["frameTree"]["frame"][
                        "url"
                    ] == page.url
                    context = page.context
                assert [tab.url for tab in context.pages] == ["about:blank#users"]
    assert seen == [False, True]


async def test_a_users_browser_that_does_not_answer_is_named():
    """The error says where nobody listens."""
    async with Browser(CaptureSettings(cdp_url="http://127.0.0.1:9")) as browser:
        with pytest.raises(MachineError, match=r"a browser at http://127\.0\.0\.1:9"):
            await browser.start()


async def test_a_tab_that_fails_in_the_users_browser_fails_alone(tmp_path, caplog):
    """The connection and the other tabs go on, and nothing is said to have ended."""
    async with (
        users_browser(tmp_path) as address,
        Browser(CaptureSettings(cdp_url=address)) as browser,
        browser.page("socks5://127.0.0.1:9") as (page, _),
    ):
        context = page.context
        context.on("page", _close)
        with pytest.raises(BrowserGoneError):
            async with browser.page("socks5://127.0.0.1:9") as (_, session):
                await session.send("Page.getFrameTree")
        context.remove_listener("page", _close)
        async with browser.page("socks5://127.0.0.1:9") as (other, _):
            assert other.context is context
        assert not page.is_closed()
    assert caplog.text.count("lost") == caplog.text.count("unexpectedly") == 0


async def _close(page):
    with suppress(Error):
        await page.close()
