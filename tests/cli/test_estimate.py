"""``--estimate``: what a run would take, told without a key, a request or a file."""

import json
import re
import shutil

import pytest
from projects import TASK, Project, call, overridden, read_json
from servers.judge_server import JudgeServer

from mind2web2.cli import evaluate_main, main
from mind2web2.judge.store import STORE_NAME, JudgmentStore

CLAIMS = {"first": ("The lake is deep.", None), "second": ("The lake is cold.", None)}
# gpt-4o: 40 tokens at $2.50, 60 cached at $1.25 and 10 out at $10 a million.
PRICE_USD = (40 * 2.5 + 60 * 1.25 + 10 * 10) / 1e6


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Return a project with one task of two answers, in which commands run without any key."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    project = Project(tmp_path)
    project.add_answer("answer_1", "[depth](https://a.example/depth)")
    project.add_answer("answer_2")
    project.add_script(CLAIMS)
    return project


@pytest.fixture
def server():
    """Return a judge that supports every claim."""
    with JudgeServer() as server:
        yield server


def run(server, *more):
    """Run the command with this judge."""
    options = (
        "--agent_name",
        "bot",
        "--judge_model",
        "gpt-4o",
        "--judge_base_url",
        server.base_url,
    )
    return call(evaluate_main, "--no_capture", *overridden(options, more))


def files(project):
    """Return all files with their content."""
    return {path: path.read_bytes() for path in project.root.rglob("*") if path.is_file()}


def estimate_of(task, shown):
    """Return the cells of a task's row."""
    (row,) = (line for line in shown.splitlines() if line.startswith(f"│ {task} "))
    return [cell.strip() for cell in row.strip("│").split("│")]


def test_a_first_run_counts_what_the_scripts_ask(project, server):
    """Nothing is asked or written, and no key is needed."""
    before = files(project)
    for command in ((evaluate_main, "--agent_name", "bot"), (main, "evaluate", "bot")):
        told = call(*command, "--estimate")
        assert (told.returncode, told.stderr) == (0, "")
        assert "Answers to evaluate: 2 of 2; 0 have a result that is up to date." in told.stdout
        assert "Judge: o4-mini (openai https://api.openai.com/v1)." in told.stdout
        assert estimate_of(TASK, told.stdout)[-1] == "0"
        assert "Judge requests: probably 8; tokens in: " in told.stdout
        assert re.search(r"^Dollars: probably \$\d\S+\.$", told.stdout, re.M)
        assert "1 cited page not cached. A page is captured when a claim needs it." in told.stdout
        assert "less where judgments are stored" in " ".join(told.stdout.split())
        assert told.stdout.endswith("Nothing was asked or written.\n")
    assert (files(project), server.calls) == (before, [])


def test_a_later_run_is_known(project, server):
    assert run(server).returncode == 0
    asked, before = len(server.calls), files(project)
    told = run(server, "--estimate")
    assert "Answers to evaluate: 0 of 2; 2 have a result that is up to date." in told.stdout
    assert "Judge requests: probably 0; " in told.stdout
    assert "Dollars: probably $0.0000." in told.stdout
    assert "All cited pages are cached." in told.stdout
    again = run(server, "--estimate", "--overwrite")
    cells = estimate_of(TASK, again.stdout)
    assert (cells[:3], cells[-1]) == ([TASK, "2 of 2", str(asked)], "2")
    assert "Judge requests: probably 8; " in again.stdout
    assert f"probably ${asked * PRICE_USD:.4f}." in again.stdout
    assert (
        "1 cited page not cached. This run captures nothing, so claims on them are not supported."
        in again.stdout
    )
    assert (files(project), len(server.calls)) == (before, asked)


def test_results_without_tokens_are_no_basis(project, server):
    """Recorded replies may have none."""
    assert run(server).returncode == 0
    for path in (*project.result_paths(), *project.result_paths("answer_2")):
        result = read_json(path)
        result["judge_usage"]["input_tokens"] = 0
        path.write_text(json.dumps(result))
    told = run(server, "--estimate", "--overwrite")
    assert estimate_of(TASK, told.stdout)[-1] == "0"


def test_an_unknown_price_is_reported(project, server):
    told = run(server, "--estimate", "--judge_model", "judge-1")
    assert told.returncode == 0
    assert (
        "Dollars: unknown, because mind2web2 has no price for judge-1. You can write it into "
        "mind2web2.toml." in told.stdout
    )
    assert project.results.exists() is False


@pytest.mark.usefixtures("project")
def test_a_replay_costs_nothing(server):
    told = run(server, "--estimate", "--llm_provider", "replay")
    assert (told.returncode, told.stdout) == (
        0,
        "A replay judges from stored judgments. It asks nothing and costs nothing.\n",
    )


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--max_cost", "1000"], "--max_cost 1000 probably covers the run."),
        (
            ["--max_cost", "$0.0001"],
            "--max_cost 0.0001 will probably not cover the run",
        ),
    ],
)
def test_options_that_bear_on_it_are_noted(options, words):
    told = call(evaluate_main, "--agent_name", "bot", "--estimate", *options)
    assert (told.returncode, told.stderr) == (0, "")
    assert words in told.stdout


def test_answers_that_will_have_no_result_are_listed(project):
    project.add_answer("answer_3", b"\xff")
    project.add_answer("answer_4", b"")
    told = call(evaluate_main, "--agent_name", "bot", "--estimate")
    assert told.returncode == 0
    assert "Answers to evaluate: 2 of 3; 0 have a result" in told.stdout
    assert re.search(
        r"^Not estimated: lake/answer_3\.md: answer \S+ is not UTF-8",
        told.stdout,
        re.M,
    )
    assert (
        "Score 0, without asking the judge: lake/answer_4.md: the agent gave an empty answer"
        in told.stdout
    )


def test_judgments_of_another_agent_are_not_asked_again(project, server):
    assert run(server).returncode == 0
    asked, theirs = len(server.calls), (project.results / STORE_NAME).read_bytes()
    shutil.copytree(project.root / "answers" / "bot", project.root / "answers" / "newer")
    newer = ("--agent_name", "newer")
    assert run(server, *newer).returncode == 0
    assert (len(server.calls), (project.results / STORE_NAME).read_bytes()) == (
        asked,
        theirs,
    )
    with JudgmentStore(project.results.parent / "newer" / STORE_NAME) as store:
        shared = [each for each in store.all() if each.purpose != "gate"]
    assert [each.reused_from for each in shared] == ["bot"] * len(shared)
    scores = [
        call(main, "metrics", name, "--json").stdout.count("1.0") for name in ("bot", "newer")
    ]
    assert scores[0] == scores[1]
    assert run(server, *newer, "--overwrite").returncode == 0
    assert len(server.calls) == 2 * asked


@pytest.mark.usefixtures("project")
def test_a_first_run_follows_the_rule_of_votes(server):
    told = run(server, "--estimate", "--votes", "1")
    assert "Judge requests: probably 4; " in told.stdout


def test_a_damaged_store_of_another_agent_is_left_out(project, server, caplog):
    """The run asks instead, and names it."""
    other = project.results.parent / "older" / STORE_NAME
    other.parent.mkdir(parents=True)
    other.write_bytes(b"no database at all, but long enough to be read" * 100)
    found = run(server)
    assert found.returncode == 0
    assert "the judgments of agent older cannot be read" in caplog.text
    assert len(server.calls) > 0


EXTRACTING = """
from pydantic import BaseModel
class Lake(BaseModel):
    name: str
    urls: list[str]
lakes = await evaluator.extract("Which?", Lake)
for n, url in enumerate(lakes.urls):
    await evaluator.verify(f"{lakes.name} {n}", evaluator.add_leaf(f"{n}", "d"), url)
return evaluator.get_summary()
"""


def test_extractions_are_filled_for_the_estimate(project):
    project.add_script_body(EXTRACTING)
    told = call(evaluate_main, "--agent_name", "bot", "--estimate").stdout
    assert "Judge requests: probably 14; " in told


def test_an_answer_whose_script_fails_is_not_estimated(project):
    project.add_script_body("raise KeyError('no lake')")
    told = call(evaluate_main, "--agent_name", "bot", "--estimate").stdout
    assert "Not estimated: lake/answer_1.md: " in told
    assert "KeyError" in told
