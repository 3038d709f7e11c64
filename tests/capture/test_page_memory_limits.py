"""A page that takes too much memory fails alone, with a record that says so."""

import os
import re
import resource
import subprocess
import sys
import threading
import zlib
from contextlib import contextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from capture.shared_browser import capturing
from fixtures.process_tree import descendants
from servers.toothed_site import Reply, SiteServer, certificate

from mind2web2.capture.browser import Browser
from mind2web2.capture.browser_process import limit_pages
from mind2web2.capture.models import CaptureSettings, NetworkSettings

HOST = "www.bombs.example"
MEGABYTE = 1024**2
# The limit does not cover the memory of the processes' programs, which the system does not count.
PROGRAM_MB = 200
HEAD = (
    b"<!doctype html><title>weir</title><p>" + b"The weir of Aldermoor holds the water back. " * 5
)
PARAGRAPH = b"<p>And there is more to tell about the weir.</p>\n"
SCRIPTS = {"arrays": "const kept = []; for (;;) kept.push(new Array(1e6).fill(1.5));"}


def bomb(head, piece, megabytes=200):
    """Return so much HTML, a thousandth of it over the wire."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    start = packer.compress(head) + packer.flush(zlib.Z_FULL_FLUSH)
    # After a full flush the same input gives the same output.
    block = packer.compress(piece * (MEGABYTE // len(piece))) + packer.flush(zlib.Z_FULL_FLUSH)
    return Reply(iter([start, *[block] * megabytes]), headers={"Content-Encoding": "gzip"})


class BombSite(SiteServer):
    """Serves bombs, and an ordinary page."""

    def __init__(self):
        """Serve one more host."""
        super().__init__(more_hosts=(HOST,))

    def reply(self, request):
        """Answer with what the path names."""
        name = request.path.strip("/")
        if name == "paragraphs":
            return bomb(HEAD, PARAGRAPH)
        if name == "comment":
            return bomb(HEAD + b"<!-- ", b"more ")
        if name == "framed":
            return Reply(HEAD + b"<iframe src=/paragraphs></iframe>")
        return Reply(HEAD + f"<script>{SCRIPTS.get(name, '')}</script>".encode())


@contextmanager
def peak_of_renderers():
    """Yield a list that holds, at the end, the most memory in MB that each renderer ever had."""
    peaks, ended = {}, threading.Event()

    def watch():
        # A page fills its memory within a tenth of a second.
        while not ended.wait(0.01):
            for pid in descendants(os.getpid()):
                try:
                    if "--type=renderer" in Path(f"/proc/{pid}/cmdline").read_text(
                        errors="replace"
                    ):
                        peak = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
                        peaks[pid] = int(peak[1]) // 1024 if peak else 0
                except OSError:
                    continue

    watcher = threading.Thread(target=watch)
    found = []
    watcher.start()
    try:
        yield found
    finally:
        ended.set()
        watcher.join()
        found.extend(peaks.values())


LITTLE_MEMORY = {"max_page_memory_bytes": 500 * MEGABYTE}
# A machine that is busy may need a minute to fill that memory; nobody waits longer than it does.
PATIENT = {"load_timeout_s": 300.0, "settle_timeout_s": 100.0, "page_timeout_s": 900.0}


async def captured(browser, name, **limits):
    """Capture a page, and an ordinary one after it with the same browser."""
    with BombSite() as site:
        network = NetworkSettings(host_map=site.host_map)
        async with capturing(browser, network, max_retries=0, **PATIENT, **limits) as manager:
            page = await manager.capture(f"https://{HOST}/{name}")
            return page.record, (await manager.capture(f"https://{HOST}/plain")).record


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def limited_browser():
    """A browser whose pages may use little memory."""
    network = NetworkSettings(trusted_keys=(certificate().spki,))
    async with Browser(CaptureSettings(network=network, **LITTLE_MEMORY)) as browser:
        yield browser


@pytest.mark.parametrize("name", ["framed", *SCRIPTS])
async def test_a_page_that_takes_all_memory_loses_its_own_process(limited_browser, name):
    with peak_of_renderers() as peaks:
        bomb, plain = await captured(limited_browser, name, max_html_bytes=10**12, **LITTLE_MEMORY)
    assert (bomb.kind, bomb.troubles[0].kind) == (None, "crash")
    assert "may use 500 MB of memory" in bomb.failure
    assert (plain.failure, plain.troubles) == (None, ())
    assert 200 < max(peaks) < 500 + PROGRAM_MB


BROWSER = """
import subprocess, sys, threading
page = [sys.executable, "-c", "import sys; sys.stdin.read()", "--type=renderer"]
print(subprocess.Popen(page, stdin=subprocess.PIPE).pid, flush=True)
while True:
    threading.Thread(target=int).start()
"""


def test_pages_are_limited_while_threads_of_the_browser_end():
    command = [sys.executable, "-c", BROWSER]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as browser:
        try:
            page = int(browser.stdout.readline())
            for limit in range(700 * MEGABYTE, 400 * MEGABYTE, -MEGABYTE):
                limit_pages(browser.pid, limit)
                assert resource.prlimit(page, resource.RLIMIT_DATA)[0] == limit
        finally:
            browser.kill()


@pytest.mark.parametrize("name", ["comment", "framed"])
async def test_a_document_beyond_its_bound_ends_the_capture(browser, name):
    """The bound holds for decoded documents of frames and of the page; it is not tried again."""
    with peak_of_renderers() as peaks:
        bomb, plain = await captured(browser, name, max_html_bytes=8 * MEGABYTE)
    assert (bomb.kind, bomb.troubles[0].kind, bomb.is_transient) == (
        None,
        "too_large",
        False,
    )
    assert bomb.failure == "the page is larger than 8 MB"
    assert (plain.failure, plain.troubles) == (None, ())
    assert 50 < max(peaks) < 1500


async def test_all_that_a_page_loads_has_a_bound_too(browser):
    """The sum of its documents and their parts."""
    bomb, _ = await captured(browser, "framed", max_decoded_bytes=8 * MEGABYTE)
    assert bomb.failure == "the page and what it loads are larger than 8 MB"
