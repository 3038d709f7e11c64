"""``mind2web2.toml`` in the commands: what it sets, what overrides it, what is wrong with it."""

import pytest
from projects import call, claim_in, entered, read_json
from servers.judge_server import JudgeServer, prompt_text

from mind2web2.cli import evaluate_main, main
from mind2web2.llm_client.prices import set_own_prices

RUN = ("--agent_name", "bot", "--no_capture")


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Return a project with one task of one answer, in which commands run."""
    project = entered(tmp_path, monkeypatch)
    project.add_answer("answer_1")
    project.add_script({"leaf": ("The lake is deep.", None)})
    yield project
    set_own_prices({})


@pytest.fixture
def server():
    """Return a judge whose replies take 2,000 tokens in, half of them cached, and 500 out."""

    def reply(body):
        is_claim = claim_in(prompt_text(body))
        return {"reasoning": "read", "result": True} if is_claim else {"urls": []}

    with JudgeServer(reply, input_tokens=2000, cached_tokens=1000, output_tokens=500) as server:
        yield server


def write(project, server, more=""):
    """Write a file that names this judge."""
    lines = f'judge_model = "local-judge"\njudge_base_url = "{server.base_url}"\n{more}'
    (project.root / "mind2web2.toml").write_text(lines, encoding="utf-8")


def test_an_editor_may_begin_the_file_with_a_byte_order_mark(project, server):
    write(project, server)
    path = project.root / "mind2web2.toml"
    path.write_text(path.read_text(encoding="utf-8"), encoding="utf-8-sig")
    assert "judge_model local-judge" in call(evaluate_main, *RUN).stdout


def test_the_file_names_the_judge_and_its_price(project, server):
    """Flags override single settings, and the run says what it took from the file."""
    price = '[prices."local-judge"]\ninput = 2.0\ncached_input = 1.0\noutput = 4.0\n'
    write(project, server, f"judge_temperature = 0.5\n{price}")
    run = call(evaluate_main, *RUN, "--judge-temperature", "1")
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.splitlines()[0] == (
        f"Settings from mind2web2.toml: judge_model local-judge, judge_base_url {server.base_url}, "
        "prices of local-judge."
    )
    assert [(body["model"], body["temperature"]) for body in server.requests] == [
        ("local-judge", 1.0)
    ] * 2
    # Two requests at 1,000 fresh, 1,000 cached and 500 output tokens.
    assert "$0.0100" in run.stdout
    assert read_json(project.result_paths()[0])["judge_usage"]["cost_usd"] == pytest.approx(0.01)
    estimate = call(evaluate_main, *RUN, "--overwrite", "--estimate", "--judge-temperature", "1")
    assert "Dollars: " in estimate.stdout
    assert "not known" not in estimate.stdout


def test_a_price_from_the_file_keeps_a_budget(project, server):
    """``--max_cost`` refuses models without a known price otherwise."""
    write(project, server)
    refused = call(evaluate_main, *RUN, "--max_cost", "0.009")
    assert (refused.returncode, "no price is known" in refused.stderr) == (2, True)
    write(project, server, '[prices."local-judge"]\ninput = 1000\noutput = 1000\n')
    stopped = call(evaluate_main, *RUN, "--max_cost", "0.009")
    assert (stopped.returncode, server.requests) == (1, [])
    assert "--max_cost" in stopped.stdout


def test_the_file_may_limit_the_cost(project, server):
    """The command line may raise the limit; a value that is not an amount is refused."""
    price = '[prices."local-judge"]\ninput = 1000\noutput = 1000\n'
    write(project, server, f"max_cost = 0.009\n{price}")
    stopped = call(evaluate_main, *RUN)
    assert (stopped.returncode, server.requests) == (1, [])
    assert "max_cost 0.009" in stopped.stdout
    assert call(evaluate_main, *RUN, "--max_cost", "100").returncode == 0
    write(project, server, f"max_cost = 0\n{price}")
    assert "mind2web2.toml: max_cost: '0' is no" in call(evaluate_main, *RUN).stderr


def test_a_replay_takes_its_judge_from_the_store(project, server):
    """A judge that the file names must not hide the stored one.

    Another provider's judge is not meant either.
    """
    asked = call(evaluate_main, *RUN, "--judge_model", "m", "--judge_base_url", server.base_url)
    assert asked.returncode == 0
    write(project, server)
    replayed = call(evaluate_main, *RUN, "--llm_provider", "replay")
    assert (replayed.returncode, "Settings from" in replayed.stdout) == (0, False)
    other = call(evaluate_main, *RUN, "--llm_provider", "azure_openai")
    assert "AZURE_OPENAI" in other.stderr


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('judge_modl = "m"', "unknown key judge_modl: did you mean judge_model?"),
        ('judge-model = "m"', "unknown key judge-model: did you mean judge_model?"),
        ("zzz = 1", "unknown key zzz: known are answer_folder, eval_scripts_root,"),
        (
            "[prices.m]\ninput = 1\noutptu = 2",
            "prices.m.output: Field required: write [prices.",
        ),
        (
            "[prices.m]\ninput = 1",
            'prices.m.output: Field required: write [prices."MODEL"]',
        ),
        ("[prices.m]\ninput = 1\noutput = -2", 'write [prices."MODEL"]'),
        (
            f"[prices.m]\ninput = 1\noutput = {10**400}",
            'write [prices."MODEL"]',
        ),
        ("prices = 3", 'prices: Input should be a valid dictionary: write [prices."MODEL"]'),
        (
            'llm_provider = "mistral"',
            "llm_provider: 'mistral' is not one of openai, azure_openai",
        ),
        (
            'api_key = "sk"',
            "unknown key api_key: API keys come from environment variables, such as",
        ),
        (
            '[prices."m"]\ninput = 1\noutput = 2\nmax_cost = 5',
            "prices.m.max_cost: unknown key: write ",
        ),
        (
            "[prices.gpt-4.1]\ninput = 1\noutput = 2",
            '[prices."MODEL"], in quotes if it has a dot',
        ),
        (
            "judge_model = 5",
            'judge_model is 5: write for example judge_model = "gpt-5-mini"',
        ),
        (
            'judge_model = " "',
            "judge_model is ' ': write for example judge_model = \"gpt-5-mini\"",
        ),
        (
            "max_llm_requests = 2.5",
            "max_llm_requests is 2.5: write for example max_llm_requests = 60",
        ),
        (
            "max_llm_requests = true",
            "max_llm_requests is True: write for example max_llm_requests = 60",
        ),
        (
            'judge_temperature = "1"',
            "judge_temperature is '1': write for example judge_temperature = 0.5",
        ),
        (
            "judge_temperature = 3",
            "judge_temperature: '3' is not a temperature from 0 to 2",
        ),
        (
            'judge_base_url = "localhost:1"',
            "judge_base_url is not an http(s) address: localhost:1",
        ),
        ('judge_mdel = "f"', "unknown key judge_mdel: did you mean judge_model?"),
        ('judge_extra_body = "x"', "judge_extra_body: 'x' is not a JSON object"),
        (
            "judge_extra_body = { model = 1 }",
            "judge_extra_body: model is not free to choose: use --judge_model",
        ),
        (
            b'judge_model = "\xff"',
            "cannot read mind2web2.toml: 'utf-8' codec can't decode byte 0xff",
        ),
        (
            "max_llm_requests = 0",
            "max_llm_requests: '0' is not a whole number of at least 1",
        ),
        ("judge_model = []", "judge_model is []: write for example judge_model ="),
        ("judge_model", "cannot read mind2web2.toml: "),
    ],
)
def test_a_mistake_in_the_file_stops_every_command(project, content, message):
    """One line says what is wrong and what is meant."""
    file = content if isinstance(content, bytes) else content.encode()
    (project.root / "mind2web2.toml").write_bytes(file)
    for run in (call(evaluate_main, *RUN), call(main, "cache", "bot")):
        assert (run.returncode, run.stdout) == (2, "")
        [line] = run.stderr.splitlines()
        assert message in line


def test_a_folder_or_a_broken_link_in_its_place_is_an_error(project):
    """Settings that somebody meant to give must not be left out in silence."""
    path = project.root / "mind2web2.toml"
    path.mkdir()
    assert (
        call(evaluate_main, *RUN).stderr
        == "run_eval.py: cannot read mind2web2.toml: Is a directory\n"
    )
    path.rmdir()
    path.symlink_to("nowhere")
    assert call(evaluate_main, *RUN).stderr.endswith(": No such file or directory\n")


def test_secrets_in_an_address_are_not_printed(project):
    """User, password and query of a base URL stay in the file."""
    line = 'judge_base_url = "http://me:sk-1@127.0.0.1:9/v1?key=sk-2"'
    (project.root / "mind2web2.toml").write_text(line, encoding="utf-8")
    run = call(evaluate_main, *RUN, "--estimate")
    assert (
        "judge_base_url http://127.0.0.1:9/v1." in run.stdout
        and "sk-" not in run.stdout + run.stderr
    )


def test_the_key_of_the_environment_goes_to_no_server_of_the_file(project, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    line = 'judge_base_url = "http://judge.example:9/v1"'
    (project.root / "mind2web2.toml").write_text(line, encoding="utf-8")
    run = call(evaluate_main, *RUN, "--estimate")
    wanted = "mind2web2.toml would send your OPENAI_API_KEY to http://judge.example:9/v1: if you"
    assert wanted in run.stderr
    monkeypatch.setenv("OPENAI_BASE_URL", "http://judge.example:9/v1")
    assert "would send" not in call(evaluate_main, *RUN, "--estimate").stderr


def test_cache_asks_a_model_only_if_an_option_names_it(project, server):
    """The file gives server and price; the last line says what was asked and what it cost."""
    write(project, server, '[prices."local-judge"]\ninput = 2.0\noutput = 4.0\n')
    without = call(main, "cache", "bot")
    assert (without.returncode, without.stderr) == (0, "")
    assert without.stdout.splitlines()[-1] == (
        "Not looked for: links written as plain words, as in 'see example dot org', in 1 answer "
        "(name a model with --judge_model)."
    )
    assert server.requests == []
    run = call(main, "cache", "bot", "--judge_model", "local-judge")
    assert run.stdout.splitlines()[-1] == (
        "Asked local-judge for links written as plain words in 1 answer: 1 request, 2,000 tokens "
        "in, 500 out, $0.0060."
    )
    # The reply is kept, also for a run that names no model.
    assert "plain words" not in call(main, "cache", "bot").stdout
    (project.root / "mind2web2.toml").unlink()
    assert "plain words" not in call(main, "cache", "bot").stdout
    assert len(server.requests) == 1


def test_folders_may_stand_in_the_file(project, server):
    write(
        project,
        server,
        'eval_results_root = "elsewhere"\nallow_private_network = true\n',
    )
    run = call(evaluate_main, *RUN)
    assert "eval_results_root elsewhere, allow_private_network True" in run.stdout.splitlines()[0]
    assert len(list(project.root.glob("elsewhere/bot/*/*/results/*.json"))) == 1
    assert read_json(next(project.root.glob("elsewhere/bot/*/*/results/*.json")))["provenance"][
        "with_private_network"
    ]
    assert "score 1" in call(main, "show", "bot", "lake", "answer_1").stdout
    assert "--eval_results_root" not in run.stdout
    missing = call(main, "show", "bot", "--eval_results_root", "eval_results")
    assert (missing.returncode, "no results of agent bot" in missing.stderr) == (
        2,
        True,
    )


def test_the_task_list_may_stand_in_the_file(project, server):
    """Tasks without results then count 0."""
    write(project, server, 'task_list = "tasks.txt"\n')
    (project.root / "tasks.txt").write_text("lake\nmoon\n")
    assert call(evaluate_main, *RUN).returncode == 0
    assert call(main, "metrics", "bot", "--json").returncode == 1
    assert '"moon"' in call(main, "metrics", "bot", "--json").stdout


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            'allow_private_network = "yes"',
            "write for example allow_private_network = true",
        ),
        ("cache_root = 3", "cache_root is 3: write for example cache_root ="),
    ],
)
def test_a_mistake_in_the_file_stops_commands_that_look_at_results(project, content, message):
    (project.root / "mind2web2.toml").write_text(content)
    run = call(main, "show", "bot")
    assert (run.returncode, run.stdout, message in run.stderr) == (2, "", True)
