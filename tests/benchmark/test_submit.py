"""``mind2web2 validate`` and ``submit``, and the way from download to submission."""

import hashlib
import json
import sys
from zipfile import ZipFile

import pytest
from projects import AGENT, Project, call, read_json
from servers.hub_server import COMMIT, HubServer
from servers.judge_server import JudgeServer, prompt_text
from servers.local_http import Answer, LocalHttp

from mind2web2.cli import main


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Stand in a project with a task list of two tasks and three runs of one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "tasks.csv").write_text("task_id\nlake\nmill\n")
    made = Project(tmp_path)
    for task in ("lake", "mill"):
        for number in (1, 2, 3):
            made.add_answer(f"answer_{number}", "Deep: https://lake.example/depth", task)
    return made


def validate(*options):
    """Return status and findings of the command."""
    run = call(main, "validate", AGENT, "--task_list", "tasks.csv", *options)
    return run.returncode, run.stdout.splitlines()


@pytest.mark.usefixtures("project")
def test_answers_in_order():
    """Nothing is found."""
    assert validate() == (0, ["2 tasks: 0 errors, 0 warnings"])


@pytest.mark.parametrize(
    ("name", "content", "status", "finding"),
    [
        (
            "lake/answer_1.md",
            b"\xff",
            1,
            "Error: answer answers/bot/lake/answer_1.md is not UTF-8",
        ),
        (
            "lake/answer_1.meta.json",
            b"{",
            1,
            "Error: answers/bot/lake/answer_1.meta.json: it cannot be read",
        ),
        ("lake/answer_1.meta.json", b"[]", 1, "it is not a JSON object"),
        (
            "lake/answer_1.meta.json",
            b'{"time_seconds": "x"}',
            1,
            "time_seconds is not a number of seconds",
        ),
        ("lake/answer_2.md", b" \n", 0, "Warning: answers/bot/lake/answer_2.md: empty"),
        (
            "lake/answer_2.md",
            b"Deep.",
            0,
            "Warning: answers/bot/lake/answer_2.md: it cites no URL",
        ),
        ("lake/answer_2.md", None, 0, "Warning: answers/bot/lake/answer_2.md: missing"),
        ("lake/answer_4.md", b"https://a.example", 0, "answer_4.md: beyond 3 runs"),
        ("lake/answer_01.md", b"https://a.example", 0, "answer_01.md: stray file"),
        ("lake/answer_0.md", b"https://a.example", 0, "answer_0.md: stray file"),
        ("lake/answer_9.meta.json", b"{}", 0, "answer_9.meta.json: there is no answer"),
        ("lake/notes.txt", b"x", 0, "Warning: answers/bot/lake/notes.txt: stray file"),
        (
            "sea/answer_1.md",
            b"https://a.example",
            0,
            "Warning: answers/bot: not in the task list: sea",
        ),
    ],
)
def test_findings(project, name, content, status, finding):
    """Errors prevent a submission, warnings do not."""
    path = project.root / "answers/bot" / name
    path.parent.mkdir(exist_ok=True)
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    found, lines = validate()
    assert found == status
    assert finding in lines[0]
    submitted = call(main, "submit", AGENT, "--task_list", "tasks.csv")
    assert submitted.returncode == status
    assert (project.root / "bot.zip").exists() == (status == 0)


@pytest.mark.usefixtures("project")
def test_pages_in_a_bucket_are_not_packed():
    """A submission would lack them."""
    run = call(main, "submit", AGENT, "--cache_root", "s3://bucket/pages")
    assert (run.returncode, run.stdout) == (2, "")
    assert "submit packs folders of this machine: copy s3://bucket/pages to a disk" in run.stderr


@pytest.mark.parametrize(
    "place",
    ["answers/bot/lake/notes.txt", "cache/bot/lake/page.txt", "answers/bot/lake/more"],
)
def test_no_link_is_packed(project, place):
    """It could lead to any file of this machine; the error names it."""
    (project.root / "private").mkdir()
    (project.root / "private" / "key.txt").write_text("secret")
    path = project.root / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(project.root / "private" / ("key.txt" if path.suffix else ""))
    run = call(main, "submit", AGENT, "--task_list", "tasks.csv")
    assert (run.returncode, (project.root / "bot.zip").exists()) == (2, False)
    assert f"{place} is a link" in run.stderr


def test_a_missing_task_is_an_error(project):
    """As the leaderboard needs all of them."""
    (project.root / "tasks.csv").write_text("task_id\nlake\nmill\nriver\n")
    assert validate() == (
        1,
        [
            "Error: answers/bot/river: there is no such folder",
            "3 tasks: 1 error, 0 warnings",
        ],
    )


PAGE = (
    b"<!doctype html><title>Depth</title><h1>The depth</h1>"
    b"<p>The lake is 80 m deep, as a survey found.</p>"
)
AGENT_PROGRAM = "import sys; print('It is 80 m deep, see ' + sys.argv[1] + sys.argv[2])"


def test_from_download_to_submission(tmp_path, monkeypatch):
    """get, answer, cache, evaluate, metrics and submit, with local servers and the real browser."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("HF_TOKEN", "hf_good")
    monkeypatch.setenv("OPENAI_API_KEY", "dummy")
    page = Answer(PAGE, headers={"Content-Type": "text/html; charset=utf-8"})
    (tmp_path / "agent.py").write_text(AGENT_PROGRAM)
    with (
        LocalHttp(lambda _request: page) as site,
        JudgeServer(
            lambda body: {
                "reasoning": "r",
                "result": "as a survey found" in prompt_text(body),
            }
        ) as judge,
    ):
        author = Project(tmp_path / "author")
        script = author.add_script({"deep": ("It is 80 m deep.", f"{site.url}/lake")})
        files = {
            "dev_set.csv": b"task_id,task_description\nlake,How deep?\n",
            "evaluation_scripts/2025_07_14/lake.py": script.read_bytes(),
        }
        monkeypatch.setenv("OPENAI_BASE_URL", judge.base_url)
        program = f"{sys.executable} agent.py {site.url}/ {{task_id}} {{question}}"
        listed = ("--task_list", "tasks/dev_set.csv")
        commands = [
            ("get",),
            ("answer", "example", "--command", program, "--runs", "3"),
            ("cache", "example", "--no_llm", "--allow_private_network"),
            ("evaluate", "example", "--no_capture"),
            ("metrics", "example", *listed, "--fail_under", "1"),
            ("submit", "example", *listed),
        ]
        with HubServer(files) as hub:
            monkeypatch.setenv("HF_ENDPOINT", hub.url)
            for words in commands:
                run = call(main, *words)
                assert run.returncode == 0, (words, run.stdout, run.stderr)
    entry = json.loads(run.stdout.splitlines()[-1])
    summary = read_json(tmp_path / "eval_results/example/summary.json")
    assert entry["partial_completion"] == f"{summary['avg_score']:.2f}"
    assert entry["pass3"] == f"{summary['pass_at_3']:.2f}"
    assert entry["words"] == f"{summary['avg_answer_word_count']:.2f}"
    with ZipFile(tmp_path / "example.zip") as archive:
        manifest = json.loads(archive.read("manifest.json"))
        names = set(archive.namelist()) - {"manifest.json"}
        assert names == manifest["files"].keys()
        for name, found in manifest["files"].items():
            assert hashlib.sha256(archive.read(name)).hexdigest() == found["sha256"]
        results = [name for name in names if "/results/" in name]
        assert len(results) == 3
        assert b"80 m deep" in b"".join(
            archive.read(name) for name in names if name.endswith(".txt")
        )
        assert json.loads(archive.read(results[0]))["provenance"]["dataset_commit"] == COMMIT
    assert "eval_results/example/judgments.jsonl" in names
    assert {name.split("/")[0] for name in names} == {
        "answers",
        "cache",
        "eval_results",
    }
    assert manifest["leaderboard"] == entry


def test_no_entry_without_results(project):
    """The archive is written, and one line says what is missing."""
    run = call(main, "submit", AGENT, "--task_list", "tasks.csv", "-o", "out/mine.zip")
    assert run.returncode == 0
    assert "There is no entry for the leaderboard: " in run.stdout.splitlines()[-1]
    assert (project.root / "out/mine.zip").exists()
    assert "it needs --task_list" in call(main, "submit", AGENT).stdout
