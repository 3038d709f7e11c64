"""``--proxy`` as commands take it; passwords appear nowhere."""

import asyncio
import sys
from pathlib import Path

import pytest
from projects import REPOSITORY, call, clean_environment
from servers.http_proxy import CREDENTIALS, PASSWORD, http_proxy
from servers.local_http import Answer, LocalHttp

from mind2web2.cli import main

PAGE = (
    b"<!doctype html><title>Weir</title><p>The weir of Ottermoss was built of oak in the year "
    b"1911.</p>"
)


def command_lines():
    """Return the command lines of all processes."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_bytes().replace(b"\0", b" ").decode())
        except OSError:  # it has ended
            continue
    return lines


async def test_a_proxy_with_credentials(tmp_path, monkeypatch):
    """The page comes through it; no process list, output or file has the password."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "answers" / "bot" / "lake"
    folder.mkdir(parents=True)
    (folder / "answer_1.md").write_text("[weir](http://weir.example/) [gone](http://gone.example/)")
    listed = []

    def answer(_):
        listed.extend(command_lines())
        return Answer(PAGE, headers={"Content-Type": "text/html"})

    with LocalHttp(answer) as site:
        address = ("127.0.0.1", int(site.url.rpartition(":")[2]))
        async with http_proxy({"weir.example": address}, tunnels_to=443) as proxy:
            options = (
                "--proxy",
                proxy.url_with_credentials,
                "--max_retries",
                "0",
            )
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "mind2web2", "cache", "bot", *options),
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                env=clean_environment() | {"PYTHONPATH": str(REPOSITORY), "COLUMNS": "200"},
            )
            output = (await process.communicate())[0].decode()
    assert process.returncode == 1
    assert "http://weir.example/" in proxy.requests
    stored = "".join(path.read_text(errors="replace") for path in tmp_path.glob("cache/**/*.*"))
    assert "built of oak" in stored
    assert "gone.example" in output
    assert any("mind2web2 cache bot" in line for line in listed)
    for text in (output, stored, *listed):
        assert PASSWORD not in text
        assert CREDENTIALS not in text


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--proxy", "socks5://u:secret@h"), "must be http://HOST:PORT"),
        (("--proxy", "nonsense"), "must be http://HOST:PORT"),
        (
            ("--proxy", "http://h", "--cdp_url", "http://127.0.0.1:9222"),
            "leave --proxy out",
        ),
    ],
)
def test_options_that_make_no_sense(words, reason, tmp_path, monkeypatch):
    """One line says what to do; a password in it is left out."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "answers" / "bot" / "lake"
    folder.mkdir(parents=True)
    (folder / "answer_1.md").write_text("[weir](http://weir.example/)")
    run = call(main, "cache", "bot", *words)
    assert run.returncode == 2
    assert reason in run.stderr
    assert "secret" not in run.stderr
