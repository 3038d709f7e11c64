"""Judges that take few images or none: learned, noted and replayed."""

import io
import sqlite3
from functools import cache

import pytest
from PIL import Image
from projects import call, claim_in, entered, read_json
from servers.judge_server import JudgeServer, image_urls, prompt_text, status

from mind2web2.cli import evaluate_main, main

URLS = [f"https://lake.test/{name}" for name in ("a", "b", "c")]
CLAIMS = {url[-1]: (f"The lake is deep, says {url[-1]}.", url) for url in URLS}
CLAIMS |= {"wide": ("The lake is wide.", URLS[0]), "cold": ("The lake is cold.", None)}
NONE_SHOWN = "no images are shown to this judge"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Return a project of three answers, whose pages have five images, one and none."""
    project = entered(tmp_path, monkeypatch)
    for number in range(1, 4):
        project.add_answer(f"answer_{number}", f"The lake is deep and cold. {number}")
    project.add_script(CLAIMS)
    for url, height_px in zip(URLS, (9000, 1500, None), strict=True):
        project.cache().put_web(
            url, f"The lake is deep. {url}", height_px and screenshot(height_px)
        )
    return project


@cache
def screenshot(height_px):
    """Return a page's screenshot."""
    buffer = io.BytesIO()
    Image.new("RGB", (1100, height_px), "white").save(buffer, "JPEG")
    return buffer.getvalue()


def takes(count, message, code=400):
    """Return what refuses more images than so many."""
    return lambda body: status(code, message) if len(image_urls(body)) > count else None


def wants_strings(body):
    """Refuse any content that is not a string, as a text-only server does."""
    is_string = all(isinstance(message["content"], str) for message in body["messages"])
    return None if is_string else status(400, "'messages.1.content' : value must be a string")


def verdict(body):
    """Support every claim but one."""
    return {
        "reasoning": "read",
        "result": claim_in(prompt_text(body)) != CLAIMS["wide"][0],
    }


def evaluate(*options):
    """Evaluate the project's answers in this process."""
    return call(evaluate_main, "--agent_name", "bot", "--judge_model", "judge-1", *options)


def leaves(project, stem):
    """Return the leaves of the newest result by their ids."""
    result = read_json(project.result_paths(stem)[-1])
    root = result["eval_breakdown"][0]["verification_tree"]
    return {leaf["id"]: leaf for leaf in root["children"]}


def shown(project):
    """Return what each answer's evidence says of page a's images, and how each leaf was decided."""
    pages, scores = set(), set()
    for number in range(1, 4):
        found = leaves(project, f"answer_{number}")
        page = found["a"]["evidence"]["pages"][0]["page"]
        pages.add((page["images"], *page.get("notes", ())))
        scores.add(tuple((name, leaf["score"]) for name, leaf in found.items()))
    return pages, scores


FIRST = "images: the first {} of 5 are shown to this judge"
# A refusal teaches the requests that follow: not those that are with the server, nor those that
# take their places before it is read.
IN_FLIGHT = 15
MOST_UNTAUGHT = 2 * IN_FLIGHT


@pytest.mark.parametrize(
    ("refuses", "options", "page_a", "most_refused"),
    [
        (lambda _: None, [], (5,), 0),
        (
            takes(1, "At most 1 image(s) may be provided in one request."),
            [],
            (1, FIRST.format(1)),
            MOST_UNTAUGHT,
        ),
        (takes(0, "judge-1 is not a multimodal model"), [], (0, NONE_SHOWN), MOST_UNTAUGHT),
        (wants_strings, [], (0, NONE_SHOWN), MOST_UNTAUGHT),
        (takes(2, "Request Entity Too Large", 413), [], (2, FIRST.format(2)), MOST_UNTAUGHT),
        (takes(0, "none"), ["--no_screenshots"], (0, NONE_SHOWN), 0),
    ],
)
def test_all_is_scored_with_the_images_that_a_judge_takes(
    project, refuses, options, page_a, most_refused
):
    """A run finds a limit by few requests, and the evidence states it.

    A replay shows just as much.
    """
    with JudgeServer(verdict, faults=refuses) as server:
        bound = ("--max_llm_requests", str(IN_FLIGHT))
        run = evaluate("--judge_base_url", server.base_url, *bound, *options)
    assert run.returncode == 0, run.stdout
    refused = [body for body in server.requests if refuses(body) is not None]
    assert min(most_refused, 1) <= len(refused) <= most_refused
    pages, scores = shown(project)
    assert pages == {page_a}
    assert scores == {(("a", 1.0), ("b", 1.0), ("c", 1.0), ("wide", 0.0), ("cold", 1.0))}
    assert ("claims judged without all images" in run.stdout) is (
        len(page_a) > 1 and "to this" in page_a[1]
    )
    replay = evaluate("--llm_provider", "replay")
    assert replay.returncode == 0, replay.stdout
    assert len(project.result_paths()) == 2
    assert shown(project) == (pages, scores)
    if not options:
        checked = call(main, "verify-results", "bot")
        assert checked.returncode == 0, checked.stdout


def test_a_judge_without_images_is_another_judge(project):
    with JudgeServer(verdict) as server:
        given = ("--judge_base_url", server.base_url)
        evaluate(*given)
        # Claims without images are the same questions, and are not asked again.
        before = len(server.requests)
        evaluate(*given, "--no_screenshots")
        assert 0 < len(server.requests) - before < before
        assert read_json(project.result_paths()[-1])["provenance"]["judge"]["max_images"] == 0
    assert len(project.result_paths()) == 2
    for options, images in (
        # The judge of the newest result.
        ([], 0),
        (["--no_screenshots"], 0),
        (["--judge_model", "judge-1"], 5),
    ):
        replay = call(evaluate_main, "--agent_name", "bot", "--llm_provider", "replay", *options)
        assert replay.returncode == 0, replay.stdout
        assert {page[0] for page in shown(project)[0]} == {images}


def test_a_replay_takes_a_server_by_its_whole_address(project):
    with JudgeServer(verdict) as server:
        evaluate("--judge_base_url", server.base_url)
        shorter = f"openai {server.base_url}"
        with sqlite3.connect(project.results / "judgments.sqlite3") as store:
            store.execute("CREATE TEMP TABLE others AS SELECT * FROM judgments")
            store.execute("UPDATE others SET endpoint = ?", (f"{shorter}/more",))
            store.execute("INSERT INTO judgments SELECT * FROM others")
        store.close()
        for address in (server.base_url, f"{server.base_url}/more"):
            words = (
                "--agent_name",
                "bot",
                "--llm_provider",
                "replay",
                "--judge_base_url",
                address,
            )
            assert call(evaluate_main, *words).stderr == ""


def test_a_script_that_shows_images_of_its_own(project):
    image = "data:image/jpeg;base64,/9j/"
    project.add_script_body(
        f"parts = [{{'type': 'image_url', 'image_url': {{'url': {image!r}}}}}] * 3\n"
        "said = await client.async_response(model=model, messages=[{'role': 'user', 'content': "
        "parts}])\n"
        "return {**evaluator.get_summary(), 'final_score': float(said == 'yes')}\n"
    )
    refuses = takes(1, "At most 1 image(s) may be provided in one request.")
    with JudgeServer("yes", faults=refuses) as server:
        run = evaluate("--judge_base_url", server.base_url)
    assert run.returncode == 0, run.stdout
    assert [len(image_urls(body)) for body in server.requests].count(1) >= 1
    assert "An image is left out here." in prompt_text(server.requests[-1])
    assert evaluate("--llm_provider", "replay").returncode == 0


def test_the_settings_file_may_say_that_none_are_shown(project):
    (project.root / "mind2web2.toml").write_text("no_screenshots = true", encoding="utf-8")
    with JudgeServer(verdict) as server:
        assert evaluate("--judge_base_url", server.base_url).returncode == 0
    assert {page[0] for page in shown(project)[0]} == {0}
