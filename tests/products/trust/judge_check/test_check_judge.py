"""``mind2web2 check-judge`` finds what is wrong with judges that err in known ways."""

import json
import zlib
from collections import defaultdict
from itertools import cycle

import pytest
from projects import AGENT, TASK, Project, block_in, call, read_json
from scripted_judge import ScriptedJudge
from servers.judge_server import content, image_urls, prompt_text, status
from servers.labelled_judge import labelled_judge

from mind2web2.cli import evaluate_main, main
from mind2web2.judge.caching import CachingJudge
from mind2web2.judge.client_judge import ClientProvider
from mind2web2.judge.spec import JudgeSpec
from mind2web2.judge.store import JudgmentStore
from mind2web2_trust.judge_check.labelled_set import shipped_set


def empty(case, _right=None):
    """Return the values of a form that extracts nothing."""
    return {name: [] if kind == "list" else None for name, kind in case.fields.items()}


def wrong(case, right):
    """Return the opposite verdict, or other values than the right ones."""
    if isinstance(right, bool):
        return not right
    values = {"text": "other", "integer": -1, "number": -1.0, "list": ["other"]}
    return {name: values[kind] for name, kind in case.fields.items()}


def one_in_ten(case, right):
    """Err on a tenth of the cases, drawn by their names."""
    return wrong(case, right) if zlib.crc32(f"seed 1 {case.id}".encode()) % 10 == 0 else None


MINDS = defaultdict(lambda: cycle((True, False)))


def fickle(case, right):
    """Return another verdict on a claim each time."""
    return next(MINDS[case.id]) if isinstance(right, bool) else None


ERRS = {
    "always-true": lambda _, right: True if isinstance(right, bool) else None,
    "always-false": lambda _, right: False if isinstance(right, bool) else None,
    "careless": one_in_ten,
    "no-tables": lambda case, right: wrong(case, right) if "table" in case.category else None,
    "fickle": fickle,
    "right": lambda *_: None,
}


@pytest.fixture(scope="module")
def server():
    """Return a server with all the judges."""
    with labelled_judge(ERRS) as server:
        yield server


@pytest.fixture
def check(tmp_path, monkeypatch, server):
    """Return a function that runs the command in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "dummy")
    monkeypatch.setenv("COLUMNS", "160")

    def run(*words, base_url=server.base_url):
        return call(main, "check-judge", "--judge_base_url", base_url, *words)

    return run


def figures(outcome, returncode=0):
    """Return the JSON that a check printed."""
    assert (outcome.returncode, outcome.stderr) == (returncode, "")
    return json.loads(outcome.stdout)


def test_scripted_judges(check):
    """Each one's fault is named, by category, and better judges are told from worse ones."""
    names = ("always-true", "always-false", "careless", "no-tables")
    words = [word for name in names for word in ("--judge_model", name)]
    part = shipped_set().sample(200)
    found = figures(check(*words, "--votes", "1", "--sample", "200", "--no_screenshots", "--json"))
    true, false, careless, tables = found["judges"]
    for own, accepted, rejected in ((true, 1, 0), (false, 0, 1)):
        overall = own["overall"]
        assert (
            overall["false_accepted"]["value"],
            overall["true_rejected"]["value"],
        ) == (accepted, rejected)
        assert all(
            rates["right"] == rates["cases"] / 2
            for name, rates in own["categories"].items()
            if not name.startswith("extraction")
        )
        assert len(own["wrong"]) == sum(claim.right for claim in part.claims)
    assert careless["overall"]["accuracy"]["low"] < 0.9 < careless["overall"]["accuracy"]["high"]
    assert careless["weak_categories"] == []
    assert tables["weak_categories"] == ["table cell", "extraction: table"]
    assert {entry["category"] for entry in tables["wrong"]} == {
        "table cell",
        "extraction: table",
    }
    assert tables["overall"]["right"] == 200 - sum("table" in case.category for case in part.cases)
    pairs = {
        (each["first"]["model"], each["second"]["model"]): (
            each["interval"],
            each["holm_p_value"],
        )
        for each in found["comparisons"]
    }
    assert (
        pairs["always-true", "careless"][0]["low"] > 0.1
        and pairs["always-true", "careless"][1] < 0.01
    )
    assert pairs["always-true", "always-false"][1] == 1
    assert found["set"] == {
        "version": 2,
        "seed": shipped_set().seed,
        "digest": shipped_set().digest,
        "cases": 200,
        "is_whole": False,
    }


def test_a_check_is_stored(check, server, tmp_path):
    """The second check asks nothing; no agent gets results."""
    words = ("--judge_model", "right", "--sample", "20")
    text = check(*words).stdout
    asked = len(server.calls)
    assert "20/20" in text
    again = figures(check(*words, "--json"))
    assert len(server.calls) == asked
    assert again["judges"][0]["usage"]["asked"]["judgments"] == 0
    assert [path.name for path in (tmp_path / "eval_results").iterdir()] == [".judge_checks"]
    assert any(image_urls(body) for body in server.requests if body["model"] == "right")


def test_judges_on_servers_of_their_own(check, server):
    """The one that names none is on the server of the command."""
    words = ("--judge_model", "right", "--sample", "20", "--no_screenshots", "--json")
    with labelled_judge(ERRS) as other:
        named = f"always-true@{other.base_url}"
        before = len(server.calls)
        found = figures(check(*words, "--judge_model", named))
        assert [each["name"] for each in found["judges"]] == ["right", "always-true"]
        assert {body["model"] for body in other.requests} == {"always-true"}
        assert {body["model"] for body in server.requests[before:]} == {"right"}


def test_the_table_fits_eighty_columns(check, monkeypatch):
    """Each category has its whole name, with its mark, and no figure is cut."""
    monkeypatch.setenv("COLUMNS", "80")
    text = check(
        "--judge_model",
        "no-tables",
        "--votes",
        "1",
        "--sample",
        "200",
        "--no_screenshots",
    ).stdout
    table = text[: text.index("\nRight: ")].splitlines()[1:]
    assert max(map(len, table)) <= 80 and "\u2026" not in text
    names = [row.split("  ")[0].strip() for row in table]
    assert set(shipped_set().categories) - set(names) == {
        "table cell",
        "extraction: table",
    }
    assert {"table cell *", "extraction: table *", "all"} <= set(names)


def test_failures_are_no_wrong_verdicts(check):
    """A server that breaks down on some cases: they are listed apart, and the status says so."""
    broken = {claim.question for claim in shipped_set().of(["negation"]).claims}

    def breaks(body):
        claim = block_in(prompt_text(body), "claim")
        return status(400, "broken") if claim in broken else None

    part = (
        "--category",
        "negation",
        "--category",
        "two facts",
        "--judge_model",
        "right",
        "--votes",
        "1",
    )
    with labelled_judge(ERRS, faults=breaks) as server:
        found = figures(check(*part, "--json", "--no_screenshots", base_url=server.base_url), 1)[
            "judges"
        ][0]
    assert sum(found["failures"].values()) == 16
    assert (found["overall"]["cases"], found["overall"]["right"]) == (14, 14)
    assert found["categories"]["negation"]["accuracy"]["value"] is None


def test_invalid_replies_are_counted(check):
    """One case is repaired, the replies to another are never valid."""
    never, once = (claim.question for claim in shipped_set().of(["or"]).claims[:2])
    seen = []

    def invalid(body):
        text = prompt_text(body)
        is_invalid = never in text or (once in text and once not in seen)
        seen.extend(claim for claim in (once,) if claim in text)
        return content("no JSON") if is_invalid else None

    words = (
        "--category",
        "or",
        "--judge_model",
        "right",
        "--votes",
        "1",
        "--no_screenshots",
    )
    with labelled_judge(ERRS, faults=invalid) as server:
        outcome = check(*words, "--json", base_url=server.base_url)
    found = json.loads(outcome.stdout)["judges"][0]
    assert outcome.returncode == 1
    assert found["asked_again"] == 3
    assert (found["overall"]["cases"], found["overall"]["right"]) == (13, 13)


def test_votes_that_disagree(check):
    """A judge changes its mind each time, so that the third vote decides."""
    words = (
        "--category",
        "negation",
        "--judge_model",
        "fickle",
        "--no_screenshots",
        "--json",
    )
    (found,) = figures(check(*words))["judges"]
    assert found["usage"]["asked"]["judgments"] == 3 * 16


def test_results_name_the_last_check_of_their_judge(check, server, tmp_path):
    project = Project(tmp_path)
    project.add_answer("answer_1")
    project.add_script({"leaf": ("The lake is deep.", None)})
    judge = ("--judge_model", "right", "--judge_base_url", server.base_url)
    evaluation = ("--agent_name", AGENT, "--no_capture", *judge)

    unchecked = call(evaluate_main, *evaluation)
    command = "mind2web2 check-judge"
    assert f"To see how often this judge is right: {command}\n" in unchecked.stdout
    shard = call(evaluate_main, *evaluation, "--shard", "1/1", "--eval_results_root", "shard_1")
    assert f"To see how often this judge is right: {command}\n" in shard.stdout, (
        "kept where other runs look"
    )
    assert "judge_check" not in read_json(project.result_paths()[-1])["run"]

    words = ("--judge_model", "right", "--votes", "1", "--no_screenshots")
    check(*words, "--sample", "4")
    check("--judge_model", "right", "--votes", "1", "--category", "or")
    other = call(evaluate_main, *evaluation, "--overwrite")
    assert "how often this judge is right" in other.stdout, "that judge saw no images"
    assert call(evaluate_main, *evaluation, "--overwrite", "--no_screenshots").returncode == 0
    found = read_json(project.result_paths()[-1])["run"]["judge_check"]
    assert (found["cases"], found["accuracy"], found["is_whole_set"]) == (4, 1, False)
    mention = "100% right (51% to 100%) of 4 cases, a sample, set 2 with seed 18, "
    assert f"This judge's check: {mention}" in call(main, "show", AGENT, TASK, "answer_1").stdout
    made = f"The judge's check when these scores were made: {mention}"
    assert made in call(main, "metrics", AGENT).stdout

    project.add_answer("answer_1", task="other_task")
    project.add_script({"leaf": ("The lake is deep.", None)}, "other_task")
    other = [word.replace("right", "careless") for word in evaluation]
    assert call(evaluate_main, *other, "--task_id", "other_task").returncode == 0
    again = ("--overwrite", "--no_screenshots", "--task_id", TASK)
    assert call(evaluate_main, *evaluation, *again).returncode == 0
    assert "The judge's last check" not in call(main, "metrics", AGENT).stdout, (
        "there are two judges"
    )


def test_a_check_belongs_to_all_parameters_of_its_judge():
    """Parameters of --judge_extra_body that can change replies count too."""
    settings = JudgeSpec(
        "m",
        temperature=0.5,
        reasoning_effort="low",
        max_images=1,
        extra_body='{"top_k": 1, "user": "me"}',
    )
    with JudgmentStore(None) as store:
        identity = CachingJudge(settings, ClientProvider(ScriptedJudge()), store).identity
    given = identity.model_dump(exclude={"endpoint"})
    assert given == {
        "model": "m",
        "temperature": 0.5,
        "reasoning_effort": "low",
        "max_images": 1,
        "extra_body": '{"top_k":1}',
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--category", "tables"),
            "--category tables: there is none; known are fact in running text;",
        ),
        (("--judge_model", "a", "--judge_model", "a"), "name each --judge_model once"),
    ],
)
def test_commands_that_make_no_sense(check, words, message):
    outcome = check(*words)
    assert outcome.returncode == 2
    assert message in outcome.stderr and outcome.stderr.count("\n") == 1


def test_a_judge_that_cannot_be_reached(check):
    """One line as well: nothing was found out."""
    outcome = check("--judge_model", "right", "--sample", "4", base_url="http://127.0.0.1:9")
    assert (outcome.returncode, outcome.stdout) == (2, "")
    assert "127.0.0.1:9" in outcome.stderr
