"""A browser of the user's own, which captures may be lent."""

import asyncio
import os
import signal
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from mind2web2.capture.browser_program import find_browser


@asynccontextmanager
async def users_browser(profile, *flags):
    """Start a browser of the user's own, with its DevTools open; yields their address."""
    process = await asyncio.create_subprocess_exec(
        str(find_browser(True).path),
        "--remote-debugging-port=0",
        f"--user-data-dir={profile}",
        *flags,
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "about:blank#users",
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(20):
            while not (line := await process.stderr.readline()).startswith(
                b"DevTools listening on "
            ):
                assert line, "the browser ended"
        yield f"http://{urlsplit(line.split()[-1].decode()).netloc}"
        assert process.returncode is None
    finally:
        os.killpg(
            process.pid, signal.SIGKILL
        )  # what was started may be a script that started the browser
        await process.communicate()
