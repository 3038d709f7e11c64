"""``mind2web2 rejudge``: fresh judgments beside the results that count, and their figures."""

import json
import shutil
from hashlib import sha256

import pytest
from judged_agent import judged_agent, stand_in
from projects import call, claim_in
from servers.judge_server import prompt_text

from mind2web2.cli import main

TASKS = [f"lake_{number}" for number in range(3)]


class FickleJudge:
    """Decides each claim of each task by its number.

    A few verdicts change from one judgment to the next.

    Args:
        fickle: the claims whose verdict alternates: both votes of a judgment agree.
    """

    def __init__(self, fickle=("Fact 3",)):
        """Count how often each question was asked."""
        self.fickle = fickle
        self.asked = {}
        self.models = []

    def __call__(self, body):
        """Return a verdict."""
        text = prompt_text(body)
        claim = claim_in(text)
        self.models.append(body["model"])
        before = self.asked[text] = self.asked.get(text, 0) + 1
        is_fickle = claim.startswith(self.fickle) and (before - 1) // 2 % 2
        is_other = body["model"] == "judge-2" and claim.startswith("Fact 1")
        return {
            "reasoning": "read",
            "result": ("Fact 0" not in claim) ^ bool(is_fickle) ^ is_other,
        }


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """Return a folder with an agent's answers that were judged, and the server's judge."""
    root = tmp_path_factory.mktemp("judged")
    judge = FickleJudge()
    with judged_agent(root, TASKS, judge, "judge-1") as server:
        yield root, judge, server.base_url


@pytest.fixture
def project(judged, monkeypatch):
    """Stand in the folder, without what other tests judged again; return it and the judge."""
    root, judge, base_url = judged
    stand_in(root, base_url, monkeypatch)
    return root, judge


def checksums(folder):
    """Return the content of all files by path."""
    return {
        str(path): sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def rejudged(*words, status=0):
    """Return the printed figures."""
    run = call(main, "rejudge", *words, "--json")
    assert run.returncode == status, run.stderr
    return json.loads(run.stdout)


def test_the_same_judge_is_asked_afresh(project):
    """One leaf of four alternates.

    The results that count are left alone, and nothing is asked twice.
    """
    root, judge = project
    before = checksums(root / "eval_results")
    asked = len(judge.models)
    first = call(main, "rejudge", "bot", "--times", "1")
    assert first.returncode == 0
    check = "mind2web2 check-judge"
    assert f"To see how often this judge is right: {check}\n" in first.stdout
    # The scores of one judgment are not those of the agent.
    assert "lake_0/answer_1.md" in first.stdout and "Results: rejudged/" in first.stdout
    assert "Scores" not in first.stdout and "mind2web2 show" not in first.stdout
    found = rejudged("bot")
    assert len(judge.models) - asked == 3 * len(TASKS) * 2 * 4 * 2
    assert set(judge.models[asked:]) == {"judge-1"}
    assert checksums(root / "eval_results") == before
    repeated = found["repeatability"]
    assert (repeated["answers"], repeated["leaves"], repeated["ever_flipped"]) == (
        6,
        24,
        6,
    )
    # One leaf in four has three judgments, and two of their three pairs differ.
    assert repeated["flip_rate"]["value"] == pytest.approx(1 / 6, abs=1e-6)
    assert repeated["variance"]["between_judgments"] == pytest.approx(0.25**2 / 3, abs=1e-6)
    assert found["agreement"] is None
    asked = len(judge.models)
    text = call(main, "rejudge", "bot").stdout
    assert len(judge.models) == asked
    assert "bot: two judgments of a leaf differ at 17%" in text


def test_another_judge_is_compared_with_the_results(project):
    _, judge = project
    judge.fickle = ("nothing",)
    found = rejudged("bot", "--judge_model", "judge-2")
    judge.fickle = ("Fact 3",)
    agreement = found["agreement"]
    assert found["judges"] == ["judge-1", "judge-2"]
    assert (agreement["leaves"], agreement["only_first"], agreement["only_second"]) == (
        24,
        6,
        0,
    )
    assert agreement["agreement"]["value"] == pytest.approx(0.75)
    # Passes 18 and 12 of 24: kappa (0.75 - 0.5) / (1 - 0.5), AC1 with a prevalence of 5/8.
    assert agreement["kappa"]["value"] == pytest.approx(0.5)
    assert agreement["ac1"]["value"] == pytest.approx((0.75 - 15 / 32) / (1 - 15 / 32), abs=1e-6)
    assert found["repeatability"] is None


def test_an_estimate_asks_and_writes_nothing(project):
    root, judge = project
    asked = len(judge.models)
    run = call(main, "rejudge", "bot", "--estimate")
    assert run.returncode == 0
    assert "bot: each of 3 judgments takes" in run.stdout
    assert "Answers to evaluate: 6 of 6" in run.stdout
    assert len(judge.models) == asked
    assert not (root / "rejudged").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nobody",), "no results of agent nobody"),
        (("bot", "--llm_provider", "replay"), "invalid choice: 'replay'"),
        (
            ("bot", "--judgments", "shared.sqlite3"),
            "unrecognized arguments: --judgments",
        ),
        (("bot", "--max_cost", "1"), "no price is known for model judge-1"),
        (
            ("bot", "--sample", "3", "--times", "2"),
            "argument --times: not allowed with argument --sample",
        ),
        (("bot", "--seed", "3"), "--seed goes with --sample"),
    ],
)
@pytest.mark.usefixtures("project")
def test_a_wrong_command_is_one_line(words, message):
    """Nothing is asked."""
    run = call(main, "rejudge", *words)
    assert (run.returncode, run.stderr.count("\n")) == (2, 1)
    assert message in run.stderr


@pytest.mark.parametrize(("is_other", "times"), [(False, 3), (True, 1)])
def test_a_server_alone_names_no_other_model(project, judged, is_other, times):
    """The model is that of the results; at another address it is another judge."""
    _, judge = project
    base_url = judged[2]
    if is_other:
        base_url = base_url.replace("127.0.0.1", "localhost")
    asked = len(judge.models)
    run = call(main, "rejudge", "bot", "--judge_base_url", base_url)
    assert run.returncode == 0, run.stderr
    assert set(judge.models[asked:]) == {"judge-1"}
    assert f"bot: judgment {times} of {times}" in run.stdout


def test_agents_with_equal_answers_are_judged_apart(project):
    """Judgments of one agent would make the other vary exactly alike."""
    root, judge = project
    for folder in ("answers", "eval_results"):
        shutil.copytree(root / folder / "bot", root / folder / "twin")
    asked = len(judge.models)
    rejudged("bot", "--times", "1")
    by_first = len(judge.models) - asked
    rejudged("twin", "--times", "1")
    for folder in ("answers", "eval_results"):
        shutil.rmtree(root / folder / "twin")
    assert len(judge.models) - asked == 2 * by_first
