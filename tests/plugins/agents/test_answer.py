"""``mind2web2 answer``: programs, functions and models give an agent's answers."""

import asyncio
import json
import shlex
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from fixtures.process_tree import wait_for_end
from projects import ClaimJudge, Project, call, clean_environment, evaluate, read_json
from servers.agent_server import AgentServer

from mind2web2.cli import main
from mind2web2.plugins.agents import agents

# Writes the question into the answer, and its starts into a file.
AGENT = """\
import json, os, sys, time
from pathlib import Path

question, answer, meta, task, run, mode = sys.argv[1:]
with open("starts.txt", "a") as file:
    file.write(f"{task} {run}\\n")
starts = Path("starts.txt").read_text().count(f"{task} {run}\\n")
Path(meta).write_text(json.dumps({"cost_usd": 0.5}))
print("thinking about", task)
if mode == "hang":
    Path("pid.txt").write_text(str(os.getpid()))
    time.sleep(600)
if mode == "fail" and task == "lake" or mode == "once" and starts == 1:
    sys.exit(3)
text = "" if mode == "empty" else f"run {run}: " + Path(question).read_text()
Path(answer).write_text(text)
"""
FILES = "{question_file} {answer_file} {meta_file} {task_id} {run}"


def command(mode):
    """Return the options that name the program."""
    return "--command", f"{sys.executable} agent.py {FILES} {mode}"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Stand in a project with two tasks, without answers."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("OPENAI_API_KEY", "dummy")
    monkeypatch.setattr(agents, "POLL_S", 0.001)
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks/dev.csv").write_text(
        "task_id,task_description\nlake,How deep?\nmill,Where is it?\n"
    )
    return tmp_path


def record(folder, place="lake/answer_1"):
    """Return a run's record."""
    return read_json(folder / f"answers/bot/{place}.run.json")


def starts(folder):
    """Return how often the program was started, by task and run."""
    return sorted((folder / "starts.txt").read_text().splitlines())


def test_a_program_answers_each_question_in_each_run(folder):
    """Once: a second command starts nothing; output, time and cost are kept."""
    run = call(main, "answer", "bot", *command("good"), "--runs", "2")
    assert (run.returncode, run.stderr) == (0, "")
    assert "4 runs: 4 answered; $2.00 in all" in run.stdout
    assert (folder / "answers/bot/mill/answer_2.md").read_text() == "run 2: Where is it?"
    assert (folder / "answers/bot/mill/answer_2.run.log").read_text() == "thinking about mill\n"
    assert read_json(folder / "answers/bot/mill/answer_2.meta.json")["time_seconds"] > 0
    found = record(folder)
    assert (found["status"], found["cost_usd"], found["attempts"]) == (
        "answered",
        0.5,
        1,
    )
    assert call(main, "answer", "bot", *command("good"), "--runs", "2").returncode == 0
    assert starts(folder) == ["lake 1", "lake 2", "mill 1", "mill 2"]


def test_standard_output_is_the_answer_where_no_file_is_named(folder):
    words = f"{sys.executable} -c 'import sys; print(sys.argv[1])' {{question}}"
    assert call(main, "answer", "bot", "--command", words, "--task_id", "mill").returncode == 0
    assert (folder / "answers/bot/mill/answer_1.md").read_text() == "Where is it?\n"


def test_a_function_answers(folder):
    """It is called with the question alone, in a process of its own."""
    (folder / "my_agent.py").write_text(
        "async def ask(question):\n    return {'answer': question.upper(), 'cost_usd': 0.25}\n"
    )
    assert call(main, "answer", "bot", "--callable", "my_agent:ask").returncode == 0
    assert (folder / "answers/bot/lake/answer_1.md").read_text() == "HOW DEEP?"
    assert record(folder)["cost_usd"] == 0.25


@pytest.mark.parametrize(
    ("mode", "options", "status", "attempts"),
    [
        ("fail", (), "error", 3),
        ("fail", ("--retries", "0"), "error", 1),
        ("once", (), "answered", 2),
        ("empty", (), "empty", 1),
        ("hang", ("--time_limit", "0.5", "--retries", "0"), "error", 1),
    ],
)
def test_failures_are_tried_again_and_recorded(folder, mode, options, status, attempts):
    """The costs of all attempts count."""
    run = call(main, "answer", "bot", *command(mode), "--task_id", "lake", *options)
    assert run.returncode == (0 if status == "answered" else 1)
    found = record(folder)
    assert (found["status"], found["attempts"]) == (status, attempts)
    assert (folder / "answers/bot/lake/answer_1.md").exists() == (status == "answered")
    if mode == "hang":
        assert found["reason"] == "no answer within 0.5 s"
    else:
        assert found["cost_usd"] == 0.5 * attempts


def test_a_failed_run_is_asked_again_only_on_demand(folder):
    """By --retry_failed."""
    call(main, "answer", "bot", *command("empty"))
    assert call(main, "answer", "bot", *command("good")).returncode == 1
    assert call(main, "answer", "bot", *command("good"), "--retry_failed").returncode == 0
    assert record(folder)["status"] == "answered"


def test_the_budget_stops_before_it_is_passed(folder):
    """A run starts if the dearest so far still fits; a larger budget continues."""
    run = call(main, "answer", "bot", *command("good"), "--runs", "2", "--max_cost", "1.2")
    assert run.returncode == 1
    assert "2 answered, 2 out of budget; $1.00 in all" in run.stdout
    assert record(folder, "mill/answer_2")["status"] == "out_of_budget"
    assert (
        call(main, "answer", "bot", *command("good"), "--runs", "2", "--max_cost", "2").returncode
        == 0
    )
    assert len(starts(folder)) == 4


async def test_failed_runs_count_as_zero_and_stopped_ones_have_no_score(folder):
    """In the summaries of an evaluation, by name."""
    project = Project(folder)
    project.add_script({"deep": ("The lake is deep.", None)})
    project.add_answer("answer_1")
    for number, status in ((2, "error"), (3, "empty"), (4, "out_of_budget")):
        path = folder / f"answers/bot/lake/answer_{number}.run.json"
        path.write_text(f'{{"status": "{status}", "reason": "exit status 3"}}')
    await evaluate(project, ClaimJudge())
    summary = await asyncio.to_thread(call, main, "metrics", "bot", "--json")
    numbers = json.loads(summary.stdout)
    assert {name: run["avg_score"] for name, run in numbers["per_run"].items()} == {
        "answer_1.md": 1.0,
        "answer_2.md": 0.0,
        "answer_3.md": 0.0,
    }
    [warning] = [text for text in numbers["warnings"] if "agent failed" in text]
    assert (
        "2, counted as 0: lake/answer_2 (the agent failed: exit status 3); lake/answer_3" in warning
    )
    [missing] = numbers["missing"]
    assert (missing["answer_name"], "budget" in missing["reason"]) == (
        "answer_4.md",
        True,
    )
    assert numbers["judge_models"] == {"judge-1": 1}


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (
            ("--command", "no-such-program {question}"),
            "there is no program no-such-program",
        ),
        (
            ("--command", f"{sys.executable} agent.py"),
            "needs {question_file} or {question}",
        ),
        (("--command", "'unclosed {question}"), "cannot be parsed"),
        (
            ("--command", f"{sys.executable} x.py {{question}} {{answer_fil}}"),
            "unknown placeholder {answer_fil}",
        ),
        (("--callable", "no_module:ask"), "No module named 'no_module'"),
        (
            ("--callable", "agent_functions:asc"),
            "--callable agent_functions:asc cannot be loaded",
        ),
        (("--callable", "nothing"), "not of the form module:function"),
        (
            (*command("good"), "--task_id", "river"),
            "unknown task river. Found: lake, mill",
        ),
        (
            (*command("good"), "--base_url", "http://127.0.0.1:1"),
            "--base_url goes with",
        ),
        (
            ("--chat", "own-model", "--max_cost", "1"),
            "the cost of chat own-model is not known",
        ),
        (
            ("--command", f"{sys.executable} x.py {{question}}", "--max_cost", "1"),
            "give {meta_file}",
        ),
    ],
)
@pytest.mark.usefixtures("folder")
def test_a_command_that_makes_no_sense_starts_nothing(options, problem):
    """One line says why."""
    Path("agent_functions.py").write_text("def ask(question):\n    return question\n")
    run = call(main, "answer", "bot", *options)
    assert (run.returncode, run.stderr.count("\n")) == (2, 1)
    assert problem in run.stderr
    assert not Path("answers").exists()


def test_braces_of_the_program_remain(folder):
    """JSON, awk and shell words are not placeholders."""
    own = """{"a": 1} {x: y} { print } ${HOME} {{name}} {}"""
    words = f"{sys.executable} -c 'import sys; print(sys.argv[2])' {{question}} {shlex.quote(own)}"
    assert call(main, "answer", "bot", "--command", words, "--task_id", "mill").returncode == 0
    assert (folder / "answers/bot/mill/answer_1.md").read_text() == own + "\n"


def test_a_killed_command_loses_and_doubles_nothing(folder):
    """Complete runs stay, the agent's program ends, and the rest is asked again."""
    call(main, "answer", "bot", *command("good"), "--task_id", "mill")
    words = [sys.executable, "-m", "mind2web2", "answer", "bot", *command("hang")]
    process = subprocess.Popen(words, cwd=folder, env=clean_environment())
    log = folder / "answers/bot/lake/answer_1.run.log"
    while not (folder / "pid.txt").exists() or not (folder / "pid.txt").read_text():
        assert process.poll() is None
    process.kill()
    process.wait()
    wait_for_end([(folder / "pid.txt").read_text()])
    assert record(folder)["status"] == "running"
    assert call(main, "answer", "bot", *command("good")).returncode == 0
    assert starts(folder) == ["lake 1", "lake 1", "mill 1"]
    assert log.exists()


def test_a_chat_model_answers(folder):
    """It gets the question alone; a rate limit and a server error are tried again."""
    with AgentServer(failures=[429, 500]) as server:
        run = call(
            main,
            "answer",
            "bot",
            "--chat",
            "gpt-5-mini",
            "--base_url",
            server.url,
            "--parallel",
            "1",
        )
    assert (run.returncode, run.stderr) == (0, "")
    assert server.questions[0] == [{"role": "user", "content": "How deep?"}]
    assert (folder / "answers/bot/lake/answer_1.md").read_text() == "The lake is deep."
    assert record(folder)["cost_usd"] == pytest.approx(0.00225)


def test_a_key_is_needed_where_no_server_is_named(folder, monkeypatch):
    """As for a judge: a server of one's own may need none."""
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    run = call(main, "answer", "bot", "--chat", "own-model")
    assert (
        run.returncode,
        "no key for the agent's model: set OPENAI_API_KEY" in run.stderr,
    ) == (2, True)
    with AgentServer() as server:
        run = call(main, "answer", "bot", "--chat", "own-model", "--base_url", server.url)
    assert (run.returncode, run.stderr) == (0, "")
    assert (folder / "answers/bot/lake/answer_1.md").read_text() == "The lake is deep."


def test_a_response_is_polled_and_its_citations_become_links(folder):
    """A link that the model wrote itself stays as it is; searches are part of the cost."""
    text = "It is deep. See [map](https://map.example)."
    cited = {
        "type": "url_citation",
        "url": "https://lake.example/a(b)",
        "title": "The [lake]",
    }
    own = {
        "type": "url_citation",
        "url": "https://map.example",
        "title": "Map",
        "start_index": 16,
        "end_index": 42,
    }
    notes = [cited | {"start_index": 0, "end_index": 10}, own]
    with AgentServer(text, notes) as server:
        options = ("--openai_responses", "gpt-5-mini", "--base_url", server.url)
        assert call(main, "answer", "bot", *options, "--task_id", "lake").returncode == 0
    assert (folder / "answers/bot/lake/answer_1.md").read_text() == (
        "It is deep ([The (lake)](https://lake.example/a%28b%29)). See [map](https://map.example)."
    )
    assert server.polls == {"resp_1": 2}
    assert record(folder)["cost_usd"] == pytest.approx(0.00225 + 0.01)


def test_a_failed_response_is_an_error_of_the_agent(folder):
    """It is asked again as often as --retries says."""
    final = {
        "status": "failed",
        "error": {"code": "server_error", "message": "tool broke"},
    }
    with AgentServer(final=final) as server:
        options = (
            "--openai_responses",
            "gpt-5-mini",
            "--base_url",
            server.url,
            "--retries",
            "1",
        )
        assert call(main, "answer", "bot", *options, "--task_id", "lake").returncode == 1
    assert server.created == ["resp_1", "resp_2"]
    assert record(folder)["reason"] == "response failed: tool broke"


def test_a_response_that_takes_too_long_is_cancelled(folder):
    """So that it costs no more."""
    with AgentServer(holds=threading.Event()) as server:
        options = (
            "--openai_responses",
            "gpt-5-mini",
            "--base_url",
            server.url,
            "--retries",
            "0",
        )
        limit = ("--time_limit", "0.5")
        assert call(main, "answer", "bot", *options, *limit, "--task_id", "lake").returncode == 1
    assert server.cancelled == ["resp_1"]
    assert record(folder)["reason"] == "no answer within 0.5 s"


def test_a_killed_command_continues_its_response(folder):
    """The server is not asked a second time."""
    holds = threading.Event()
    with AgentServer(holds=holds) as server:
        options = (
            "--openai_responses",
            "gpt-5-mini",
            "--base_url",
            server.url,
            "--task_id",
            "lake",
        )
        words = [sys.executable, "-m", "mind2web2", "answer", "bot", *options]
        process = subprocess.Popen(words, cwd=folder, env=clean_environment(OPENAI_API_KEY="dummy"))
        assert server.polled.wait(60)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert record(folder)["response_id"] == "resp_1"
        holds.set()
        assert call(main, "answer", "bot", *options).returncode == 0
    assert server.created == ["resp_1"]


@pytest.mark.parametrize(
    ("failures", "problem"), [([401], "refuses (HTTP 401)"), ([503] * 9, "HTTP 503")]
)
def test_a_server_that_fails_gives_no_run_a_zero(folder, failures, problem):
    """The command ends with one line, and the same command continues."""
    with AgentServer(failures=failures) as server:
        options = (
            "--chat",
            "gpt-5-mini",
            "--base_url",
            server.url,
            "--task_id",
            "lake",
        )
        run = call(main, "answer", "bot", *options)
        assert (run.returncode, run.stderr.count("\n")) == (2, 1)
        assert problem in run.stderr
        assert record(folder)["status"] == "running"
        server.failures.clear()
        assert call(main, "answer", "bot", *options).returncode == 0
