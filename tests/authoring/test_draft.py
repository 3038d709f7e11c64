"""A model drafts a task; lint and rehearsal find what is wrong with it, and the model repairs it."""

import json
import re
import signal
import subprocess
import sys
import threading

import pytest
from projects import TASK, Project, call, clean_environment, entered
from servers.judge_server import JudgeServer, content, prompt_text, refusal, status

from mind2web2.authoring.lint import lint_file
from mind2web2.cli import main
from mind2web2.prompts import instructions
from mind2web2.viewer.catalog import Catalog

FILE = "eval_scripts/own/museum.yaml"
QUESTION = "Which museum in Ottermoss is the oldest?"
PATIENCE_S = 60
RUBRIC = """\
task: any
question: any
extract:
  museum:
    ask: the museum that the answer calls the oldest
    fields:
      name: its name
      urls: the addresses that the answer cites for it
root:
  children:
    - id: given
      desc: A museum and a page are given
      critical: true
      present: [museum.name, museum.urls]
    - id: oldest
      desc: A cited page says that it is the oldest
      claim: "{museum.name} is the oldest museum in Ottermoss."
      sources: museum.urls
"""
BAD_YAML = RUBRIC.replace('"{museum', "{museum")
NO_SOURCE = RUBRIC.replace("sources: museum.urls", "sources: answer")
FORGOT_GATE = RUBRIC.replace(
    """      claim: "{museum.name} is the oldest museum in Ottermoss."
      sources: museum.urls
""",
    "      present: museum.urls\n",
)


def answer(name, extracted, expected=0.0):
    """Return an answer as the model gives it."""
    about = f"about {name}"
    return {
        **{"name": name, "about": about, "answer": f"The museum. {name}"},
        **{"extracted": extracted, "expected_score": expected},
    }


def draft(rubric=RUBRIC, **changes):
    """Return a model's reply."""
    page = 'urls: ["https://museum.example/history"]'
    wrong = [
        answer("Wrong name", f'museum: {{name: "Sea Museum", {page}}}'),
        answer("No links", 'museum: {name: "Mill Museum", urls: []}'),
        answer(
            "Wrong page!",
            'museum: {name: "Mill Museum", urls: ["https://other.example/"]}',
        ),
    ]
    solution = answer("solution", f'museum: {{name: "Mill Museum", {page}}}', 1.0)
    parts = {
        "rubric": rubric,
        "solution": solution,
        "wrong_answers": wrong,
        "doubts": ["Is it still open?"],
    }
    return parts | changes


def judging(*replies, **options):
    """Return a server that gives these replies in turn, the last one from then on."""
    waiting = list(replies)
    return JudgeServer(
        lambda _: waiting.pop(0) if len(waiting) > 1 else waiting[0], **options
    )


def run(server, *more, question=QUESTION):
    """Run the command with this server's model."""
    words = (
        "-o",
        FILE,
        "--judge_model",
        "gpt-4o",
        "--judge_base_url",
        server.base_url,
        *more,
    )
    return call(main, "draft", question, *words)


def written(project):
    """Return the files of tasks that are there."""
    return sorted(
        path.name
        for name in ("eval_scripts", "rehearsals")
        for path in visible(project.root / name)
    )


def visible(folder):
    """Return the files below a folder, without the stored replies."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return [path for path in files if ".drafts" not in path.parts]


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Stand in an empty project."""
    return entered(tmp_path, monkeypatch)


def test_a_good_draft_is_written_with_its_answers_and_a_report(project):
    """It is unreviewed, passes its rehearsal, and is not written over; the question may be a file."""
    (project.root / "question.txt").write_text(f"{QUESTION}\n", encoding="utf-8")
    with judging(draft()) as server:
        done = run(server, question="@question.txt")
        assert (done.returncode, done.stderr) == (0, ""), done.stdout
        assert QUESTION in prompt_text(server.requests[0])
        again = run(server)
        assert len(server.requests) == 1
    assert again.returncode == 2 and f"{FILE} is there already" in again.stderr
    text = (project.root / FILE).read_text(encoding="utf-8")
    assert f"task: museum\nquestion: {QUESTION}\ndrafted: unreviewed\n" in text
    cases = ["wrong_1_wrong_name.md", "wrong_2_no_links.md", "wrong_3_wrong_page.md"]
    assert written(project) == ["draft_report.txt", "museum.yaml", "perfect.md", *cases]
    for shown in (
        "claim: {museum.name} is the oldest museum in Ottermoss. <- museum.urls",
        "wrong_2_no_links: expected 0.00, got 0.00 (about No links)",
        "- Is it still open?",
        "Repaired:\n  nothing",
    ):
        assert shown in done.stdout
        assert shown in (project.root / "rehearsals/museum/draft_report.txt").read_text(
            encoding="utf-8"
        )
    assert call(main, "rehearse", "museum", "--strict").returncode == 0


@pytest.mark.parametrize(
    ("first", "finding"),
    [
        (draft(BAD_YAML), "rubric, line 17"),
        (draft(NO_SOURCE), "R201"),
        (draft(FORGOT_GATE), "wrong_1_wrong_name: expected 0.00, got 1.00"),
        (draft(wrong_answers=[]), "0 are given, 3 are needed"),
        (draft(solution=answer("s", "museum: [1, 2", 1.0)), "answer perfect: "),
        (draft(solution=answer("s", "- a list", 1.0)), "answer perfect: "),
        (
            draft(wrong_answers=[answer("w", "museum: {}", 1.0)] * 3),
            "a wrong answer deserves less than 1",
        ),
    ],
)
@pytest.mark.usefixtures("project")
def test_findings_are_shown_to_the_model_and_repaired(first, finding):
    """The second reply is the one that is written, and the report names what was wrong with the first."""
    with judging(first, draft()) as server:
        done = run(server)
        assert (done.returncode, done.stderr) == (0, ""), done.stdout
        assert len(server.requests) == 2
        assert finding in prompt_text(server.requests[1])
    assert finding in done.stdout.partition("repair 1 was asked for because of:")[2]
    assert call(main, "rehearse", "museum", "--strict").returncode == 0


def test_after_three_repairs_the_findings_stay_in_the_report(project):
    """The draft with the fewest findings is written, and a score that a repair raised is doubtful."""
    raised = draft(FORGOT_GATE)
    raised["wrong_answers"][0] |= {"expected_score": 0.9}
    with judging(
        draft(FORGOT_GATE), draft(BAD_YAML), raised, draft(BAD_YAML)
    ) as server:
        done = run(server)
        assert (done.returncode, len(server.requests)) == (1, 4)
    assert (
        "still found: case: wrong_1_wrong_name: expected 0.90, got 1.00" in done.stdout
    )
    assert "drafted: unreviewed" in (project.root / FILE).read_text(encoding="utf-8")
    assert "later repairs were worse: repair 2 is used" in done.stdout
    assert (
        "raised the expected score of wrong_1_wrong_name from 0.00 to 0.90"
        in done.stdout
    )


@pytest.mark.parametrize(
    ("replies", "options", "message"),
    [
        ([draft(BAD_YAML)], {}, "no reply has a proper rubric file"),
        (["no JSON"], {}, "no draft: "),
        ([draft()], {"faults": [content("{")] * 9}, "no draft: "),
        ([draft()], {"faults": lambda _: status(503)}, "no draft: "),
        ([draft()], {"faults": lambda _: status(401)}, "no draft: "),
        (
            [draft()],
            {"faults": lambda _: refusal()},
            "the model declined to write a draft",
        ),
    ],
)
def test_without_a_proper_reply_nothing_is_written(project, replies, options, message):
    """One line says why."""
    with judging(*replies, **options) as server:
        done = run(server, "--judge_outage_wait", "1")
    assert (done.returncode, written(project)) == (2, [])
    assert message in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.usefixtures("project")
def test_a_short_outage_is_waited_for():
    """The request is sent again."""
    with judging(draft(), faults=[status(503), content("{"), None]) as server:
        assert run(server).returncode == 0
        assert len(server.requests) == 3


def test_costs_are_estimated_and_limited(project):
    """Before anything is asked, and while it is."""
    with judging(draft(NO_SOURCE)) as server:
        told = run(server, "--estimate")
        assert told.returncode == 0 and server.requests == []
        assert re.search(
            r"Without repairs about \$0\.0\d+, with all about \$0\.\d+", told.stdout
        )
        done = run(server, "--max_cost", "0.000001")
    assert (done.returncode, written(project)) == (2, [])
    assert "more than all of max_cost" in done.stderr


@pytest.mark.usefixtures("project")
def test_the_estimate_of_an_interrupted_draft_knows_its_replies():
    """Only what is left is estimated; --overwrite counts the stored replies again."""
    faults = [None, status(401, "revoked")]
    with judging(draft(NO_SOURCE), faults=faults) as server:
        assert run(server).returncode == 2
        asked = len(server.requests)
        told = run(server, "--estimate").stdout
        again = run(server, "--estimate", "--overwrite").stdout
        assert len(server.requests) == asked
    assert "1 reply stored, 1 request of" in told
    assert "at most 2 repairs" in told and "Without further repairs" in told
    assert "stored" not in again and "at most 3 repairs" in again
    first, second = (
        re.search(r"request of ([\d,]+)", text)[1] for text in (again, told)
    )
    assert int(second.replace(",", "")) > int(first.replace(",", ""))


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_draft_continues(project, end):
    """No file of the task is left behind, and the reply that was there is not asked for again."""
    arrived, released, replies = threading.Event(), threading.Event(), []

    def reply(_):
        replies.append(draft(NO_SOURCE) if not replies else draft())
        if len(replies) == 2:
            arrived.set()
            released.wait(PATIENCE_S)
        return replies[-1]

    with JudgeServer(reply) as server:
        words = [
            sys.executable,
            "-m",
            "mind2web2",
            "draft",
            QUESTION,
            "-o",
            FILE,
            "--judge_model",
            "gpt-4o",
        ]
        environment = clean_environment(OPENAI_API_KEY="dummy")
        with subprocess.Popen(
            [*words, "--judge_base_url", server.base_url],
            cwd=project.root,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert arrived.wait(PATIENCE_S)
            process.send_signal(end)
            stdout, stderr = process.communicate(timeout=PATIENCE_S)
        released.set()
        assert written(project) == []
        if end is signal.SIGINT:
            assert (process.returncode, stderr) == (130, "")
            assert "the same command continues" in stdout
        before = len(server.requests)
        done = run(server)
        assert (done.returncode, len(server.requests) - before) == (0, 1), done.stderr
    assert "2 judgments asked" not in done.stdout and "1 reused" in done.stdout


def test_results_of_an_unreviewed_task_say_so(project):
    """In metrics and in the viewer's overview, until a person has reviewed the file."""
    project.add_answer()
    script = project.root / "eval_scripts" / "own" / f"{TASK}.yaml"
    script.parent.mkdir(parents=True)
    drafted = RUBRIC.replace("task: any", f"task: {TASK}\ndrafted: unreviewed")
    script.write_text(drafted, encoding="utf-8")
    values = {"museum": {"name": "Mill Museum", "urls": []}}
    with JudgeServer(lambda _: json.dumps(values)) as server:
        judge = (
            "--judge_model",
            "judge-1",
            "--judge_base_url",
            server.base_url,
            "--no_capture",
        )
        for text, is_said in (
            (drafted, True),
            (drafted.replace("unreviewed", "reviewed"), False),
        ):
            script.write_text(text, encoding="utf-8")
            assert call(main, "evaluate", "bot", *judge).returncode == 0
            warning = f"drafted by a model and reviewed by no person: {TASK};"
            [agent] = Catalog(Project(project.root).paths).overview()["agents"]
            said = [
                call(main, "metrics", "bot").stdout,
                call(main, "metrics", "bot", "--json").stdout,
                "\n".join(agent["warnings"]),
            ]
            assert [warning in " ".join(text.split()) for text in said] == [is_said] * 3
        assert len(server.requests) == 1


def test_the_example_in_the_prompt_is_a_rubric_without_findings(tmp_path):
    """The model imitates it."""
    [example] = re.findall(r"```yaml\n(.*?)```", instructions("draft"), re.DOTALL)
    path = tmp_path / "museum.yaml"
    path.write_text(example, encoding="utf-8")
    assert lint_file(path) == []
