"""``--judge_pool``, several ``--judge_base_url`` and ``--judge_extra_body`` in the commands."""

import json
from contextlib import ExitStack

import pytest
from projects import KEY_VARIABLES, Project, call, claim_in, read_json
from servers.judge_server import JudgeServer, prompt_text

from mind2web2.cli import evaluate_main, main

RUN = ("--agent_name", "bot", "--no_capture")
THINKING = '{"chat_template_kwargs": {"enable_thinking": false}}'


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Return a project with one task of one answer, in which commands run."""
    for name in KEY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    project = Project(tmp_path)
    project.add_answer("answer_1", "The lake is deep, says the town's page.")
    project.add_script({name: (f"The lake is {name}.", None) for name in ("deep", "cold", "wide")})
    return project


def reply(body):
    """Support every claim; find no link."""
    return {"reasoning": "read", "result": True} if claim_in(prompt_text(body)) else {"urls": []}


@pytest.fixture
def servers():
    """Return three servers of one model."""
    with ExitStack() as stack:
        yield [stack.enter_context(JudgeServer(reply, models=["m"])) for _ in range(3)]


def requests(servers):
    """Return all requests of these servers."""
    return [body for server in servers for body in server.requests]


def evaluate(*options):
    """Evaluate, and expect a result."""
    run = call(evaluate_main, *RUN, *options)
    assert (run.returncode, run.stderr) == (0, ""), run.stdout
    return run.stdout


def test_judgments_outlive_the_servers_of_a_pool(project, servers):
    """Another pool of the same model, by whatever option, asks nothing again; nor does a replay."""
    one, two, three = servers
    (project.root / "judges.txt").write_text(
        f"{one.base_url} model=m\n{two.base_url}\n", encoding="utf-8"
    )
    pool = ("--judge_pool", "judges.txt")
    assert "Judge: m (openai pool)." in evaluate(*pool, "--estimate")
    evaluate(*pool)
    asked = len(requests(servers))
    assert one.requests and two.requests
    judge = read_json(project.result_paths()[0])["provenance"]["judge"]
    assert (judge["endpoint"], judge["model"]) == ("openai pool", "m")
    (project.root / "judges.txt").write_text(f"{three.base_url} model=m", encoding="utf-8")
    assert "reused" in evaluate(*pool)
    for path in project.result_paths():
        path.unlink()
    evaluate(
        "--judge_model",
        "m",
        "--judge_base_url",
        one.base_url,
        "--judge_base_url",
        three.base_url,
    )
    evaluate("--llm_provider", "replay")
    assert len(requests(servers)) == asked
    assert call(main, "verify-results", "bot").returncode == 0
    # A single server is another judge.
    evaluate("--judge_model", "m", "--judge_base_url", three.base_url)
    assert len(three.requests) > 0


def test_every_command_takes_the_pool_of_the_settings_file(project, servers):
    """The command line's server replaces it."""
    one, two, three = servers
    (project.root / "judges.txt").write_text(
        f"{one.base_url} model=m\n{two.base_url}\n", encoding="utf-8"
    )
    settings = 'judge_pool = "judges.txt"\njudge_extra_body = { top_k = 1 }\n'
    (project.root / "mind2web2.toml").write_text(settings, encoding="utf-8")
    assert (
        'Settings from mind2web2.toml: judge_pool judges.txt, judge_extra_body {"top_k":1}.'
        in evaluate()
    )
    cached = call(main, "cache", "bot")
    assert cached.returncode == 0, cached.stderr
    assert "Asked m for links written as plain words" in cached.stdout
    assert {body["top_k"] for body in requests(servers)} == {1}
    assert three.requests == []
    evaluate("--judge_base_url", three.base_url, "--judge_model", "m")
    assert len(three.requests) >= 3


def test_judging_again_takes_the_servers_of_a_pool(project, servers):
    """Results do not name them.

    All else comes from the results, and the suggested check can be run.
    """
    urls = [server.base_url for server in servers]
    (project.root / "judges.txt").write_text("\n".join(urls), encoding="utf-8")
    pool = ("--judge_pool", "judges.txt")
    evaluate(*pool, "--judge_model", "m")
    again = ("rejudge", "bot", "--times", "2")
    without = call(main, *again)
    assert (without.returncode, without.stderr.count("\n")) == (2, 1)
    assert "the results of bot were judged by a pool: give --judge_pool FILE" in without.stderr
    both = (word for url in urls[:2] for word in ("--judge_base_url", url))
    by_file, by_urls = (call(main, *again, *words) for words in (pool, both))
    for run in (by_file, by_urls):
        assert run.returncode == 0, run.stderr
        assert "judged 2 times by m" in run.stdout and "agrees with the results" not in run.stdout
    check = f"mind2web2 check-judge --llm_provider openai --judge_model m {' '.join(pool)}"
    assert f"To see how often this judge is right: {check}\n" in by_file.stdout


@pytest.mark.usefixtures("project")
def test_parameters_that_change_replies_belong_to_the_judge(servers):
    """Others, such as a priority, are sent and ask nothing again.

    A replay and the exports know them.
    """
    server = servers[0]
    judge = ("--judge_base_url", server.base_url, "--judge_model", "m")
    evaluate(*judge, "--judge_extra_body", THINKING)
    asked = len(server.requests)
    assert {json.dumps(body["chat_template_kwargs"]) for body in server.requests} == {
        '{"enable_thinking": false}'
    }
    more = '{"priority": 5, "chat_template_kwargs": {"enable_thinking": false}}'
    evaluate(*judge, "--judge_extra_body", more)
    assert "Answers to evaluate: 0 of 1" in evaluate(
        *judge, "--judge_extra_body", more, "--estimate"
    )
    evaluate("--llm_provider", "replay", "--task_id", "lake")
    assert len(server.requests) == asked
    assert "Judge requests: 0" not in evaluate(*judge, "--estimate")
    evaluate(*judge, "--judge_extra_body", '{"priority": 5}')
    assert len(server.requests) == 2 * asked
    assert "priority" in server.requests[-1]
    exported = call(main, "judgments", "export", "bot", "all.jsonl").stdout
    assert """--judge_extra_body '{"chat_template_kwargs":{"enable_thinking":false}}'""" in exported


def test_a_server_that_answers_as_another_model_ends_the_run(project):
    """Its answers have no result, unless an alias says that both names mean one model."""
    with JudgeServer(reply, served="m-instruct") as server:
        (project.root / "judges.txt").write_text(server.base_url, encoding="utf-8")
        pool = ("--judge_pool", "judges.txt", "--judge_model", "m")
        refused = call(evaluate_main, *RUN, *pool)
        assert refused.returncode != 0
        assert (
            "answers as m-instruct, not m: leave the server out" in refused.stdout + refused.stderr
        )
        assert project.result_paths() == []
        project.add_settings('judge_alias = ["m-instruct=m"]')
        evaluate(*pool)
        assert len(project.result_paths()) == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            ["--batch"],
            "--batch asks the batch endpoints of one provider: leave the judge pool out",
        ),
        (
            ["--llm_provider", "replay"],
            "a replay asks no server: leave the judge pool out",
        ),
        (
            ["--llm_provider", "gemini"],
            "servers of the provider openai: leave --llm_provider gemini out",
        ),
        (
            ["--judge_pool", "judges.txt"],
            "--judge_pool lists the servers: leave --judge_base_url out",
        ),
        (
            ["--judge_model", ""],
            "argument --judge_model: the value is empty: give one, or leave the option out",
        ),
        (["--judge_model", "other"], "must serve the same model, other: http"),
    ],
)
def test_a_pool_that_cannot_be_is_explained(project, servers, given, message):
    """In one line, before anything is asked."""
    (project.root / "judges.txt").write_text(servers[2].base_url, encoding="utf-8")
    urls = [word for server in servers[:2] for word in ("--judge_base_url", server.base_url)]
    model = [] if "--judge_model" in given else ["--judge_model", "m"]
    run = call(evaluate_main, *RUN, *urls, *model, *given)
    assert (run.returncode, run.stderr.count("\n")) == (2, 1)
    assert message in run.stderr
    assert requests(servers) == []
