"""``run_eval.py`` on pages that are not cached.

The real browser captures them on the spot, or nobody captures them at all.
"""

import json

import pytest
from projects import Project, read_json, run_command
from servers.judge_server import JudgeServer, prompt_text
from servers.local_http import Answer, LocalHttp

from mind2web2.pages.cache import CacheFileSys

HTML = (
    b"<!doctype html><title>Lake</title><h1>The lake</h1><p>Depth: 80 m. Formed by a glacier "
    b"long ago.</p>"
)
NO_PROGRAMS = "/nonexistent"
DOWNLOAD = (
    "Warning: scripts could not download files: 1 (lake 1), on this machine or its network (if "
    "you trust "
    "the answers, add --allow_private_network)\n"
)
PRIVATE = (
    "Warning: 2 cited pages unavailable (lake 1, pond 1); claims on them are not supported; 2 of "
    "them on this machine or its network (if you trust the answers, add --allow_private_network)\n"
)


def site(request):
    """Serve one page, and nothing else."""
    if request.path == "/paper":
        return Answer(b"%PDF-1.7\n", headers={"Content-Type": "application/pdf"})
    if request.path != "/depth":
        return Answer(b"gone", 404, {"Content-Type": "text/html"})
    return Answer(HTML, headers={"Content-Type": "text/html; charset=utf-8"})


@pytest.fixture
def server():
    """Serve the cited page."""
    with LocalHttp(site) as running:
        yield running


@pytest.fixture
def judge():
    """Support every claim."""
    with JudgeServer() as running:
        yield running


@pytest.fixture
def project(tmp_path, server):
    """Return a project with two answers to each of two tasks, three claims each about one page."""
    project = Project(tmp_path)
    for task in ("lake", "pond"):
        for stem in ("answer_1", "answer_2"):
            project.add_answer(stem, task=task)
        claims = {
            name: (f"The lake is {name}.", f"{server.url}/depth")
            for name in ("deep", "cold", "wide")
        }
        project.add_script(claims, task=task)
    return project


def evaluate(project, judge, *more, **variables):
    """Run the command as a user does."""
    options = ["--agent_name", "bot", "--judge_base_url", judge.base_url, *more]
    return run_command(*options, cwd=project.root, **variables)


def complaints(stderr):
    """Return what was said on standard error, but for whose account it is."""
    return [line for line in stderr.splitlines() if "running as root" not in line]


def test_an_uncached_page_is_captured_once_and_kept(project, server, judge):
    url = f"{server.url}/depth"
    folder = ("--cache_root", "pages/new")
    run = evaluate(project, judge, "--allow_private_network", *folder)
    assert (run.returncode, complaints(run.stderr)) == (0, [])
    assert [request.path for request in server.requests].count("/depth") == 1
    for task in ("lake", "pond"):
        cache = CacheFileSys(project.root / "pages/new/bot" / task)
        text, screenshot = cache.get_web(url)
        assert "Depth: 80 m." in text
        assert screenshot is not None
        assert cache.capture_record(url).status == 200
        assert project.task_summary(task)["answer_2.md"]["score"] == 1.0
    assert all("Depth: 80 m." in prompt_text(body) for body in judge.requests)
    asked = len(server.requests)
    again = evaluate(project, judge, "--overwrite", *folder, PATH=NO_PROGRAMS)
    assert (again.returncode, complaints(again.stderr)) == (0, [])
    assert len(server.requests) == asked


def test_refused_pages_are_judged_once_private_addresses_are_allowed(project, server, judge):
    """A result that failed for want of the option holds without it.

    With the option, it is judged anew, once.
    """
    assert PRIVATE in evaluate(project, judge).stdout
    assert PRIVATE in evaluate(project, judge).stdout
    assert server.requests == []
    [path] = project.result_paths()
    [page] = read_json(path)["eval_breakdown"][0]["verification_tree"]["children"][0]["evidence"][
        "pages"
    ]
    assert (page["outcome"], "refused" in page["reason"]) == ("unavailable", True)
    run = evaluate(project, judge, "--allow_private_network")
    assert (run.returncode, complaints(run.stderr)) == (0, [])
    assert project.task_summary("lake")["answer_1.md"]["score"] == 1.0
    assert "could not be had" not in run.stdout
    for options in ([], ["--allow_private_network"]):
        assert evaluate(project, judge, *options).returncode == 0
        assert len(project.result_paths()) == 2


def test_a_refusal_for_another_reason_is_not_blamed_on_private_addresses(project, judge):
    """The option does not open the ports of services that are not the web's."""
    for task in ("lake", "pond"):
        project.add_script({"mail": ("It is deep.", "http://127.0.0.1:25/")}, task)
    run = evaluate(project, judge)
    assert "2 cited pages unavailable (lake 1, pond 1); claims on them" in run.stdout
    assert "--allow_private_network" not in run.stdout
    assert evaluate(project, judge, "--allow_private_network").returncode == 0
    assert len(project.result_paths()) == 1


def test_without_a_browser_an_answer_gets_no_result(project, server, judge):
    """One line says how to get one, or how to do without."""
    project.cache("pond").put_web(f"{server.url}/depth", "Depth: 80 m", None)
    run = evaluate(project, judge, "--allow_private_network", PATH=NO_PROGRAMS)
    assert run.returncode == 1
    [line] = [line for line in run.stdout.splitlines() if line.startswith("No result: ")]
    assert line.startswith("No result: lake/answer_1.md, lake/answer_2.md: no browser found")
    assert "--no_capture" in line
    assert project.task_summary("pond")["answer_1.md"]["score"] == 1.0


def test_nothing_is_captured_where_that_is_not_wanted(project, server, judge):
    """The claims fail, and the run says beforehand how many pages are missing."""
    cited = {"all_unique_urls": [f"{server.url}/depth", f"{server.url}/other"]}
    (project.root / "cache" / "bot").mkdir(parents=True)
    (project.root / "cache" / "bot" / "lake.json").write_text(json.dumps(cited))
    run = evaluate(project, judge, "--no_capture", "--allow_private_network")
    assert (run.returncode, complaints(run.stderr)) == (0, [])
    assert run.stdout.startswith(
        "2 cited pages not cached. This run captures nothing, so claims on them are not supported.\n"
    )
    assert server.requests == []
    assert project.task_summary("lake")["answer_1.md"]["score"] == 0.0


def test_a_replay_captures_nothing(project, server, judge):
    for task in ("lake", "pond"):
        project.add_script(
            {
                "known": ("It is deep.", None),
                "cited": ("It is cold.", f"{server.url}/depth"),
            },
            task,
        )
    assert evaluate(project, judge, "--no_capture").returncode == 0
    options = [
        "--agent_name",
        "bot",
        "--llm_provider",
        "replay",
        "--allow_private_network",
    ]
    run = run_command(*options, cwd=project.root)
    assert (run.returncode, complaints(run.stderr), server.requests) == (0, [], [])
    assert project.task_summary("lake")["answer_1.md"]["score"] == 0.5


def test_downloads_of_scripts_keep_to_the_same_addresses(project, server, judge):
    """Each run executes such a script again, and writes a result only if it differs."""
    project.add_script_body(
        f"""
        from mind2web2.api_tools.tool_pdf import is_pdf
        leaf = evaluator.add_leaf("deep", "deep")
        await evaluator.verify(claim="The lake is deep.", node=leaf)
        assert getattr(leaf, "sta" + "tus") == "passed"
        evaluator.add_custom_node(await is_pdf("{server.url}/paper"), "fetched", "fetched")
        return evaluator.get_summary()
        """
    )
    runs = (([], 0.0, 1), ([], 0.0, 1), (["--allow_private_network"], 1.0, 2))
    for options, score, results in runs:
        run = evaluate(project, judge, "--task_id", "lake", "--no_capture", *options)
        assert (run.returncode, complaints(run.stderr)) == (0, [])
        assert project.task_summary("lake")["answer_1.md"]["score"] == score
        assert len(project.result_paths()) == results
        assert (DOWNLOAD in run.stdout, not server.requests) == (
            score == 0.0,
            score == 0.0,
        )
