"""``--judge_cascade``: a cheap judge votes first, and a strong one decides where it is in doubt."""

from collections import Counter
from threading import Lock

import pytest
from projects import block_in, call, claim_in, entered, read_json
from servers.judge_server import JudgeServer, prompt_text

from mind2web2.cli import evaluate_main, main
from mind2web2.judge.store import FILE_NAME, JudgmentStore
from mind2web2.runs.results import latest_result

CHEAP, STRONG = "gpt-4o-mini", "gpt-4o"
SCRIPT = """
for name in ("gate", "sure", "failed", "split", "unquoted"):
    leaf = evaluator.add_leaf(name, "", critical=name == "gate")
    await evaluator.verify(f"The lake is {name}.", leaf, None)
return evaluator.get_summary()
"""
FOUND = {"quote": "deep and cold"}


class TwoJudges:
    """Replies of two models: the strong one supports every claim but one.

    The cheap one passes *sure* and the gate, fails *failed*, votes both ways on *split*, and quotes nothing
    for *unquoted*.
    """

    def __init__(self):
        self.asked = Counter()
        self._lock = Lock()

    def __call__(self, body):
        """Return the reply to one request."""
        claim = claim_in(prompt_text(body)).removeprefix("The lake is ").rstrip(".")
        with self._lock:
            self.asked[body["model"], claim] += 1
            times = self.asked[body["model"], claim]
        if body["model"].startswith(STRONG) and body["model"] != CHEAP:
            return {"reasoning": "strong", "result": claim != "unquoted"} | FOUND
        if claim == "unquoted":
            return {"reasoning": "cheap", "result": True, "quote": ""}
        result = claim in ("sure", "gate") or (claim == "split" and times == 1)
        return {"reasoning": "cheap", "result": result} | FOUND


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Return a project with one answer, in which commands run."""
    project = entered(tmp_path, monkeypatch)
    project.add_answer()
    project.add_script_body(SCRIPT)
    return project


def judged(server, *more, cascade=f"{CHEAP},{STRONG}"):
    """Evaluate by two judges, and return the command's output."""
    options = ("--judge_base_url", server.base_url, "--judge_cascade", cascade)
    done = call(evaluate_main, "bot", *options, *more)
    assert done.returncode == 0, done.stderr
    return done.stdout


def leaves_of(project):
    """Return each leaf of the newest result by its id."""
    result = latest_result(project.folder() / "results").content
    return {leaf.id: leaf for leaf in result.leaves()}


@pytest.mark.parametrize(
    ("doubt", "votes", "strong", "cheap"),
    [
        (None, "always", "gate split unquoted", "sure failed split unquoted"),
        ("signs", "always", "split unquoted", "gate sure failed split unquoted"),
        ("split", "always", "split", "gate sure failed split unquoted"),
        ("gates", "1", "gate unquoted", "sure failed split unquoted"),
    ],
)
def test_the_strong_judge_decides_what_is_in_doubt(
    project, doubt, votes, strong, cheap
):
    """Each is asked no more than the rule says, the evidence names who decided, and the replay agrees."""
    judges = TwoJudges()
    with JudgeServer(reply=judges) as server:
        words = () if doubt is None else ("--judge_doubt", doubt)
        judged(server, "--votes", votes, *words)
    each = 1 if votes == "1" else 2
    assert judges.asked == {
        **{(STRONG, name): each for name in strong.split()},
        **{(CHEAP, name): each for name in cheap.split()},
    }
    leaves = leaves_of(project)
    decided = {name: leaf.evidence.judge for name, leaf in leaves.items()}
    assert decided == {
        name: STRONG if name in strong.split() else CHEAP for name in leaves
    }
    both = {name for name, leaf in leaves.items() if leaf.evidence.first_votes}
    assert both == set(strong.split()) & set(cheap.split())
    record = read_json(project.result_paths()[-1])["provenance"]["judge"]
    assert (record["model"], record["first_model"]) == (STRONG, CHEAP)
    assert record["doubt"] == (doubt or "gates")
    verified = call(main, "verify-results", "bot")
    assert verified.returncode == 0, verified.stdout
    metrics = call(main, "metrics", "bot").stdout
    assert f"{STRONG}" in metrics
    assert f"first={CHEAP} doubt={doubt or 'gates'}" in metrics


def test_what_one_judge_said_is_not_asked_again(project):
    """Judgments are stored under each judge's own key, whoever is asked first, and alone."""
    judges = TwoJudges()
    with JudgeServer(reply=judges) as server:
        alone = ("--judge_base_url", server.base_url, "--judge_model")
        assert call(evaluate_main, "bot", *alone, STRONG).returncode == 0
        assert call(evaluate_main, "bot", *alone, CHEAP).returncode == 0
        asked = judges.asked.total()
        output = judged(server)
        assert judges.asked.total() == asked, "both had judged every claim"
        assert f"Judges: {CHEAP} (openai {server.base_url}), and {STRONG} (" in output
        assert "where the first was in doubt (gates)" in output
        again = judged(server)
        assert "reused" in again
        assert call(evaluate_main, "bot", *alone, STRONG).returncode == 0
    assert len(project.result_paths()) == 4, "another judge, another result"
    with JudgmentStore(project.results / FILE_NAME) as store:
        keys = Counter(each.model for each in store.all() if each.purpose == "verify")
    assert keys == {STRONG: 10, CHEAP: 11}


def test_the_first_judge_may_be_on_another_server(project):
    """An address behind ``@``; the strong one's key does not go there unless it is in the environment."""
    judges = TwoJudges()
    with JudgeServer(reply=judges) as strong, JudgeServer(reply=judges) as cheap:
        judged(strong, cascade=f"{CHEAP}@{cheap.base_url},{STRONG}")
        assert {body["model"] for body in cheap.requests} == {CHEAP}
        assert {body["model"] for body in strong.requests} == {STRONG}
        pool = project.root / "pool.txt"
        pool.write_text(f"{cheap.base_url}\n")
        judged(strong, "--overwrite", cascade=f"{CHEAP}@{pool},{STRONG}")
        assert {body["model"] for body in strong.requests} == {STRONG}
        assert len(cheap.requests) == 16


def test_a_replay_answers_for_both(project):
    """It names both judges, since the store has two."""
    with JudgeServer(reply=TwoJudges()) as server:
        judged(server)
    before = {name: leaf.verdict for name, leaf in leaves_of(project).items()}
    replay = ("--llm_provider", "replay")
    assert "several fit" in call(evaluate_main, "bot", *replay).stderr
    both = call(evaluate_main, "bot", *replay, "--judge_cascade", f"{CHEAP},{STRONG}")
    assert both.returncode == 0, both.stderr
    assert len(project.result_paths()) == 2
    assert {name: leaf.verdict for name, leaf in leaves_of(project).items()} == before
    verified = call(main, "verify-results", "bot")
    assert verified.returncode == 0, verified.stdout


def test_both_judges_share_the_budget(project):
    """Each has its own price, and nothing more is asked when the dollars are spent; then it continues."""
    judges = TwoJudges()
    with JudgeServer(reply=judges) as server:
        words = ("--judge_base_url", server.base_url, "--no_isolate", "--sequential")
        cascade = ("--judge_cascade", f"{CHEAP},{STRONG}")
        stopped = call(evaluate_main, "bot", *words, *cascade, "--max_cost", "0.0004")
        assert stopped.returncode == 1
        assert "max_cost" in stopped.stdout + stopped.stderr
        some = judges.asked.total()
        assert some < 14
        done = call(evaluate_main, "bot", *words, *cascade, "--max_cost", "1")
        assert done.returncode == 0, done.stderr
    assert judges.asked.total() == 14
    usage = read_json(project.results / "usage.json")
    assert usage["newest_run"]["first_model"] == CHEAP
    costs = [run["asked"]["cost_usd"] for run in usage["runs"]]
    # 40 tokens, 60 cached ones and 10 out, at 2.50, 1.25 and 10 dollars a million, or .15, .075 and .60.
    one, other = (40 * 2.5 + 60 * 1.25 + 100) / 1e6, (40 * 0.15 + 4.5 + 6) / 1e6
    assert sum(costs) == pytest.approx(6 * one + 8 * other, rel=0.01)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--judge_cascade", "one"), "does not name two models"),
        (("--judge_cascade", "a,a"), "does not name two models"),
        (("--judge_cascade", "a,b", "--judge_model", "c"), "leave --judge_model out"),
        (("--judge_doubt", "split"), "goes with --judge_cascade"),
        (("--judge_cascade", "a@nowhere.txt,b"), "nowhere.txt is neither an address"),
        (
            ("--judge_cascade", "a@http://x/v1,b", "--batch"),
            "write the first judge without a server",
        ),
    ],
)
@pytest.mark.usefixtures("project")
def test_what_cannot_be_done_is_refused(words, message):
    """One line, and exit status 2."""
    done = call(evaluate_main, "bot", *words)
    assert done.returncode == 2
    assert message in done.stderr


def test_the_settings_file_may_name_both(project):
    """The command line's judge replaces both."""
    judges = TwoJudges()
    with JudgeServer(reply=judges) as server:
        (project.root / "mind2web2.toml").write_text(
            f'judge_base_url = "{server.base_url}"\n'
            f'judge_cascade = "{CHEAP},{STRONG}"\njudge_doubt = "split"\n'
        )
        assert call(evaluate_main, "bot").returncode == 0
        assert judges.asked[STRONG, "gate"] == 0
        assert judges.asked[STRONG, "split"] == 2
        judges.asked.clear()
        alone = call(evaluate_main, "bot", "--judge_model", STRONG)
        assert alone.returncode == 0, alone.stderr
        assert {model for model, _ in judges.asked} == {STRONG}


def test_extractions_are_the_strong_judges(project):
    """They have no sign of doubt."""
    project.add_script_body(
        """
        from pydantic import BaseModel
        class Form(BaseModel):
            depth: str
        found = await evaluator.extract("How deep?", Form)
        leaf = evaluator.add_leaf("sure", "", critical=False)
        await evaluator.verify(f"The lake is {found.depth}.", leaf, None)
        return evaluator.get_summary()
        """
    )
    models = []

    def reply(body):
        is_form = block_in(prompt_text(body), "what to extract") is not None
        models.append((body["model"], is_form))
        return {"depth": "sure"} if is_form else {"reasoning": "", "result": False}

    with JudgeServer(reply=reply) as server:
        judged(server)
    assert models == [(STRONG, True), (CHEAP, False), (CHEAP, False)]


@pytest.mark.usefixtures("project")
def test_show_and_the_paper_sentence_name_who_decided():
    """The first judge's votes are shown before those that decided in their place."""
    with JudgeServer(reply=TwoJudges()) as server:
        judged(server)
    shown = call(main, "show", "bot", "lake", "answer_1").stdout
    assert f"{CHEAP}: yes (2 of 2 votes): cheap" in shown
    assert "First judge, in doubt: yes (1 of 2 votes): cheap" in shown
    assert f"{STRONG}: yes (2 of 2 votes): strong" in shown
    metrics = " ".join(call(main, "metrics", "bot").stdout.split())
    assert f"claims first judged by {CHEAP}, in whose place {STRONG} decided" in metrics
