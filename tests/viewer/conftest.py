"""The viewer, served to a real browser."""

import asyncio
import http.client
import threading
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
import uvicorn
from patchright.async_api import async_playwright

from mind2web2.capture.browser_program import find_browser
from mind2web2.cli import evaluate_main
from mind2web2.utils.path_config import PathConfig
from mind2web2.viewer.catalog import Catalog
from mind2web2.viewer.report import ReportContent, write_report
from mind2web2.viewer.server import Session, SessionGuard, application, listen

REPOSITORY = Path(__file__).parent.parent.parent


def pytest_collection_modifyitems(items):
    """Run all tests of this folder in one event loop, which the browser lives in."""
    for item in items:
        if item.nodeid.startswith("tests/viewer/") and item.get_closest_marker("asyncio"):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@contextmanager
def served(catalog, features=None, host="127.0.0.1"):
    """Serve a catalog in a thread; yield the address with the session's key."""
    listener = listen(host, 0)
    session = Session.at(*listener.getsockname()[:2])
    app = SessionGuard(application(catalog, session, features), session)
    server = uvicorn.Server(
        uvicorn.Config(app, log_level="error", lifespan="off", timeout_graceful_shutdown=1)
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/?token={session.token}"
    finally:
        server.should_exit = True
        thread.join()


def ask(address, path, headers=None, method="GET", body=None):
    """Ask the server of an address and return status, text and answer."""
    at = urlsplit(address)
    connection = http.client.HTTPConnection(at.hostname, at.port, timeout=30)
    try:
        connection.request(method, path, body=body, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), answer
    finally:
        connection.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser():
    """Yield the browser that captures use."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=find_browser(headless=True).path)
        yield browser
        await browser.close()


@pytest_asyncio.fixture(loop_scope="session")
async def page(browser):
    """Yield a tab that must have no errors and no dialogs."""
    context = await browser.new_context(viewport={"width": 1300, "height": 900})
    page = await context.new_page()
    page.problems = []
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on("dialog", lambda dialog: page.problems.append(f"dialog: {dialog.message}"))
    yield page
    await context.close()
    assert page.problems == []


@pytest.fixture(scope="session")
def example_paths(tmp_path_factory):
    """Return the folders of the example, evaluated."""
    results = tmp_path_factory.mktemp("results")
    folders = {
        name: REPOSITORY / folder
        for name, folder in (
            ("answers_root", "answers"),
            ("cache_root", "cache"),
            ("eval_scripts_root", "eval_scripts"),
        )
    }
    arguments = ["--agent_name", "example", "--llm_provider", "replay", "--judgments"]
    arguments += [
        str(REPOSITORY / "examples" / "judgments.jsonl"),
        "--eval_results_root",
        str(results),
    ]
    arguments += [
        "--answer_folder",
        str(folders["answers_root"]),
        "--cache_root",
        str(folders["cache_root"]),
    ]
    arguments += ["--eval_scripts_root", str(folders["eval_scripts_root"])]
    assert evaluate_main(arguments) == 0
    return PathConfig(REPOSITORY).apply_overrides(eval_results_root=results, **folders)


@pytest.fixture(scope="session")
def example_server(example_paths):
    """Yield the address of the example's viewer."""
    catalog = Catalog(example_paths)
    with served(catalog) as address:
        yield address


@pytest.fixture(scope="session")
def example_file(example_paths, tmp_path_factory):
    """Return the address of the example's report on disk."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    asyncio.run(write_report(path, Catalog(example_paths), ReportContent()))
    return path.as_uri()


@pytest.fixture(params=["server", "file"])
def home(request, example_server, example_file):
    """Return the address of one of the two homes of the front end, without a view."""
    if request.param == "file":
        return example_file
    return example_server
