"""How options are spelled and read."""

import pytest
from projects import call

from mind2web2.cli import (
    batch_cache_main,
    cache_all_main,
    command_modules,
    evaluate_main,
    main,
)
from mind2web2.cli.options import CommandParser
from mind2web2.runs.session import longest_block_s
from mind2web2.runs.settings import RunSettings
from mind2web2.utils.values import (
    browser_address,
    count,
    positive_int,
    positive_seconds,
    temperature,
)


def parsed(*words):
    """Parse words with a few options."""
    parser = CommandParser(prog="x")
    parser.add_argument("--agent_name")
    parser.add_argument("--max_concurrent_answers", type="positive_int")
    parser.add_argument("--self_debug", action="store_true")
    parser.add_argument("file", nargs="?")
    return parser.parse_args(words)


@pytest.mark.parametrize(
    "words",
    [
        ["--agent_name", "my-bot", "--max_concurrent_answers", "2", "--self_debug"],
        ["--agent-name", "my-bot", "--max-concurrent-answers", "2", "--self-debug"],
        ["--agent-name=my-bot", "--max_concurrent-answers=2", "--self_debug"],
    ],
)
def test_options_are_spelled_with_either(words):
    options = parsed(*words)
    assert (options.agent_name, options.max_concurrent_answers, options.self_debug) == (
        "my-bot",
        2,
        True,
    )


@pytest.mark.parametrize("value", ["a-b", "a=b-c", "my--bot", "-", "-dash"])
def test_values_stay_as_they_are(value):
    assert parsed("--agent-name", value).agent_name == value
    assert parsed(f"--agent-name={value}").agent_name == value
    assert parsed(value).file == value


def test_the_help_says_how_long_a_script_may_block():
    told = " ".join(call(evaluate_main, "--help", "all").stdout.split())
    assert "is stopped after a third of that, at most 60 (default: 3600)" in told
    blocks_s = [
        longest_block_s(RunSettings(answer_timeout=timeout_s)) for timeout_s in (3600.0, 30.0)
    ]
    assert blocks_s == [60.0, 10.0]


def test_options_are_not_abbreviated(capsys):
    """A new option must not change what an old command means."""
    with pytest.raises(SystemExit):
        parsed("--agent", "bot")
    assert "--agent" in capsys.readouterr().err


@pytest.mark.parametrize("command", [evaluate_main, main])
def test_an_option_with_one_value_is_given_once(command):
    """The last one would win in silence otherwise; the message is one line without the usage."""
    words = ["cache", "bot"] if command is main else ["--agent_name", "bot"]
    prog = "mind2web2 cache" if command is main else "run_eval.py"
    for given, name in (
        (("--judge_model", "a", "--judge-model=b"), "--judge_model"),
        (
            ("--judge_base_url", "http://a", "--judge-base-url=http://a"),
            "--judge_base_url",
        ),
    ):
        run = call(command, *words, *given)
        message = f"{prog}: error: {name} was given twice; see {prog} --help\n"
        assert (run.returncode, run.stdout, run.stderr) == (2, "", message)


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--max_concurrent_tasks", "0", "'0' is not a whole number of at least 1"),
        ("--max_concurrent_answers", "-1", "'-1' is not a whole number of at least 1"),
        ("--max_webpage_retrieval", "1.5", "'1.5' is not a whole number of at least 1"),
        ("--max_llm_requests", "many", "'many' is not a whole number of at least 1"),
        ("--max_llm_requests", "²", "'²' is not a whole number of at least 1"),
        ("--max_llm_requests", "", "'' is not a whole number of at least 1"),
        ("--answer_timeout", "0", "'0' is not a positive number of seconds"),
        ("--answer_timeout", "inf", "'inf' is not a positive number of seconds"),
        ("--answer_timeout", "nan", "'nan' is not a positive number of seconds"),
        ("--answer_timeout", "1e300", "'1e300' is not a positive number of seconds"),
        ("--judge_model", "", "the value is empty: give one, or leave the option out"),
        ("--judge_base_url", " ", "the value is empty: give one, or leave"),
        ("--judge_reasoning_effort", "", "the value is empty: give one, or leave"),
        ("--eval_version", "", "the value is empty: give one, or leave the option out"),
        ("--answer_timeout", "soon", "'soon' is not a positive number of seconds"),
        ("--judge_extra_body", "[1]", "'[1]' is not a JSON object such as {"),
        ("--judge_extra_body", '{"a": NaN}', "is not a JSON object such as {"),
        (
            "--judge_extra_body",
            '{"temperature": 1}',
            "temperature is not free to choose: use --judge_temp",
        ),
        ("--judge_extra_body", '{"stream": true}', "stream is not free to choose"),
        ("--judge_temperature", "2.5", "'2.5' is not a temperature from 0 to 2"),
        ("--judge_temperature", "nan", "'nan' is not a temperature from 0 to 2"),
        ("--judge_temperature", "-0.1", "'-0.1' is not a temperature from 0 to 2"),
        ("--llm_provider", "mistral", "'mistral'"),
        ("--llm_provider", "opnai", "invalid choice: 'opnai': did you mean openai?"),
        ("--llm_provider", "repaly", "invalid choice: 'repaly': did you mean replay?"),
        ("--unknown", "x", "unrecognized arguments: --unknown=x"),
    ],
)
def test_a_bad_value_is_reported_with_its_option(option, value, message):
    """Exit status 2, and the last line says what is wrong."""
    run = call(evaluate_main, "--agent_name", "bot", f"{option}={value}")
    assert (run.returncode, run.stdout) == (2, "")
    last = run.stderr.splitlines()[-1]
    assert last.startswith("run_eval.py: error: ")
    assert message in last


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--max_retries", "-1"], "'-1' is not a whole number"),
        (["--max_concurrent_pages", "0"], "'0' is not a whole number of at least 1"),
        (["--overall_timeout", "0"], "'0' is not a positive number of seconds"),
        (["--only", "good"], "'good'"),
        (["--llm_provider", "replay"], "'replay'"),
        (["--headed", "--headless"], "not allowed with"),
        (["two", "words"], "unrecognized arguments: words"),
    ],
)
def test_a_bad_value_of_the_cache_commands(words, message):
    run = call(batch_cache_main, "bot", *(["lake"] if words[0] != "two" else []), *words)
    assert (run.returncode, run.stdout) == (2, "")
    assert message in run.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("command", "words", "typed", "prog"),
    [
        (main, ["cache", "bot", "--only-failed"], "--only_failed", "mind2web2 cache"),
        (
            main,
            ["cache", "bot", "--only_failed=x"],
            "--only_failed=x",
            "mind2web2 cache",
        ),
        (
            main,
            ["export", "a", "--judgments", "b", "--to-x"],
            "--to_x",
            "mind2web2 export",
        ),
        (
            evaluate_main,
            ["--agent_name", "b", "--no-thing"],
            "--no_thing",
            "run_eval.py",
        ),
    ],
)
def test_an_unknown_option_is_named_with_underscores(command, words, typed, prog):
    run = call(command, *words)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == f"{prog}: error: unrecognized arguments: {typed}; see {prog} --help\n"


@pytest.mark.parametrize(
    "url", ["nonsense", "http://", "ftp://127.0.0.1:9222", "http://127.0.0.1:port", ""]
)
@pytest.mark.parametrize(
    "command", [["cache", "bot"], ["evaluate", "bot"]], ids=["cache", "evaluate"]
)
def test_an_address_of_a_browser_is_checked_at_once(command, url):
    run = call(main, *command, f"--cdp_url={url}")
    assert (run.returncode, run.stdout) == (2, "")
    assert f"argument --cdp_url: {url!r} is not an address such as" in run.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (
            "report bot -o s3://lab/report.html",
            "argument -o/--output: takes a path on this machine, not a URL",
        ),
        (
            "import results s3://lab/eval_results --into merged",
            "argument FOLDER: takes a path on this machine",
        ),
        (
            "import judgments bot s3://lab/j.jsonl",
            "argument FILE: takes a path on this machine, not a URL",
        ),
        (
            "evaluate bot --judgments s3://lab/j.jsonl",
            "argument --judgments: takes a path on this machine, not a URL",
        ),
        (
            "verify-results bot --judgments postgresql://me:s3cret@db/judgments",
            "argument --judgments: takes a path on this machine, not a URL",
        ),
    ],
)
def test_a_url_is_no_path(words, reason, tmp_path, monkeypatch):
    """Nothing is written into a folder with the name of its scheme, and no password is printed."""
    monkeypatch.chdir(tmp_path)
    run = call(main, *words.split())
    assert (run.returncode, run.stdout) == (2, "")
    assert reason in run.stderr
    assert "s3cret" not in run.stderr
    assert list(tmp_path.iterdir()) == []


def test_good_values():
    """The bounds are among them."""
    assert [positive_int("1"), positive_int("030")] == [1, 30]
    assert [count("0"), count("2")] == [0, 2]
    assert [positive_seconds("0.5"), positive_seconds("1e3")] == [0.5, 1000.0]
    assert [browser_address(url) for url in ("http://127.0.0.1:9222", "ws://[::1]:9222/x")] == [
        "http://127.0.0.1:9222",
        "ws://[::1]:9222/x",
    ]
    assert [temperature("0"), temperature("2")] == [0.0, 2.0]


@pytest.mark.parametrize(
    ("command", "words", "taught"),
    [
        (
            evaluate_main,
            ["--help"],
            [
                "--agent_name NAME",
                "--max_cost USD",
                "OPENAI_API_KEY",
                "Exit status: 0",
                "replay",
            ],
        ),
        (
            evaluate_main,
            ["--help"],
            [
                f"python run_eval.py --agent_name my_agent {option} "
                for option in ("--estimate", "--max_cost 20")
            ],
        ),
        (
            main,
            ["evaluate", "--help"],
            [
                f"mind2web2 evaluate my_agent {option} "
                for option in (
                    "--estimate",
                    "--max_cost 20",
                    "--task_id TASK",
                )
            ],
        ),
        (
            main,
            ["--help"],
            ["cache", "evaluate", "compare", "mind2web2 evaluate AGENT"],
        ),
        (
            main,
            ["cache", "--help"],
            [
                "--only {failed,suspect}",
                "--cdp_url",
                "Exit status: 0",
                "may be repeated",
            ],
        ),
        (
            batch_cache_main,
            ["--help"],
            ["AGENT TASK", "--overall_timeout S", "(default: 120)"],
        ),
        (
            cache_all_main,
            ["--help"],
            ["[AGENT]", "(default: each of them)", "--allow_private_network"],
        ),
        (
            main,
            ["evaluate", "--help"],
            ["AGENT", "--judge_base_url URL", "(default: 30)", "--overwrite"],
        ),
        (
            main,
            ["metrics", "--help"],
            ["--task_list FILE", "--json", "missing answers count as 0"],
        ),
        (main, ["import", "--help"], ["answers", "pages", "judgments", "results"]),
        (
            main,
            ["export", "--help"],
            ["--judgments FILE", "--eval_results_root DIR"],
        ),
        (main, ["import", "judgments", "--help"], ["the agent's own, which stay"]),
    ],
)
def test_help_teaches(command, words, taught):
    run = call(command, *words)
    assert (run.returncode, run.stderr) == (0, "")
    text = " ".join(run.stdout.split())
    assert [part for part in taught if part not in text] == []


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (evaluate_main, []),
        (main, ["import"]),
        (main, ["dance"]),
        (main, ["metrics"]),
        (main, ["cache"]),
        (batch_cache_main, ["bot"]),
    ],
)
def test_a_command_without_its_arguments(command, words):
    run = call(command, *words)
    assert (run.returncode, run.stdout) == (2, "")
    assert len(run.stderr.splitlines()) == 1


def test_the_help_lists_all_commands():
    """Each is loaded only when it is named, from the module that adds it."""
    together = CommandParser(prog="mind2web2")
    commands = together.add_subparsers()
    for module in command_modules():
        module.add_command(commands)
    shown = call(main, "--help", "all").stdout
    assert [name for name in commands.choices if f"  mind2web2 {name} " not in shown] == []
    for name in commands.choices:
        assert call(main, name, "--help").stdout.startswith(f"usage: mind2web2 {name} ")


def test_a_misspelled_command_is_named():
    run = call(main, "evaluat", "bot")
    assert run.returncode == 2
    assert run.stderr.endswith(
        "invalid choice: 'evaluat': did you mean evaluate?; see mind2web2 --help\n"
    )


@pytest.mark.parametrize(
    ("command", "word", "meant"),
    [
        ("rehearse", "--strct", "--strict"),
        ("evaluate", "--judge-modle", "--judge_model"),
        ("rehearse", "--max_costs=3", "--max_cost"),
    ],
)
def test_an_unknown_option_names_the_nearest_one(command, word, meant):
    outcome = call(main, command, "x", word)
    assert outcome.returncode == 2
    assert outcome.stderr.count("\n") == 1
    assert f": did you mean {meant}?; see mind2web2 {command} --help" in outcome.stderr
