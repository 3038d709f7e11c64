"""``--judge_cascade``: a cheap judge votes first.

A strong judge decides split votes and failed gates.
"""

from collections import Counter
from functools import partial
from threading import Lock

import pytest
from projects import ANSWER, block_in, call, claim_in, entered, read_json
from servers.batch_server import BatchServer
from servers.judge_server import JudgeServer, prompt_text, status

from mind2web2 import Judge, Scorer
from mind2web2.cli import evaluate_main, main
from mind2web2.errors import UsageError
from mind2web2.judge.store import FILE_NAME, JudgmentStore
from mind2web2.plugins.batch import sender
from mind2web2.plugins.cascade.composition import cascade
from mind2web2.plugins.cascade.voting import RULE
from mind2web2.results.stored_results import latest_result

CHEAP, STRONG = "gpt-4o-mini", "gpt-4o"
SCRIPT = """
for name in ("gate", "sound_gate", "sure", "failed", "split"):
    leaf = evaluator.add_leaf(name, "", critical=name.endswith("gate"))
    await evaluator.verify(f"The lake is {name}.", leaf, None)
return evaluator.get_summary()
"""
CLAIMS = {"gate", "sound_gate", "sure", "failed", "split"}
OF_STRONG = {"gate", "split"}
FOUND = {"quote": "deep and cold"}


class TwoJudges:
    """Replies of two models: the strong one supports every claim.

    The cheap one passes *sure* and *sound_gate*, fails *failed* and *gate*, and votes both ways on
    *split*.
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
            return {"reasoning": "strong", "result": True} | FOUND
        result = claim in ("sure", "sound_gate") or (claim == "split" and times == 1)
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


@pytest.mark.parametrize(("votes", "of_strong"), [("always", 2), ("1", 1)])
def test_the_strong_judge_decides_split_votes_and_failed_gates(project, votes, of_strong):
    """The evidence names who decided, and the replay agrees.

    Only two votes of the cheap one can differ, so it has two by each rule of votes.
    """
    judges = TwoJudges()
    with JudgeServer(reply=judges) as server:
        judged(server, "--votes", votes)
    assert judges.asked == {
        **{(STRONG, name): of_strong for name in OF_STRONG},
        **{(CHEAP, name): 2 for name in CLAIMS},
    }
    leaves = leaves_of(project)
    decided = {name: leaf.evidence.judge for name, leaf in leaves.items()}
    assert decided == {name: STRONG if name in OF_STRONG else CHEAP for name in leaves}
    both = {name for name, leaf in leaves.items() if leaf.evidence.first_votes}
    assert both == OF_STRONG
    made_from = read_json(project.result_paths()[-1])["provenance"]
    record = made_from["judge"]
    assert (record["model"], record["first_model"]) == (STRONG, CHEAP)
    assert record["doubt"] == RULE
    served = {
        (each["model"].removesuffix("-2025-01-01"), each["is_first"])
        for each in made_from["served"]
    }
    assert served == {(STRONG, False), (CHEAP, True)}
    verified = call(main, "verify-results", "bot")
    assert verified.returncode == 0, verified.stdout
    metrics = " ".join(call(main, "metrics", "bot").stdout.split())
    assert f"judged by {STRONG} " in metrics
    assert f" with {CHEAP} first ({RULE})" in metrics


def test_what_one_judge_said_is_not_asked_again(project):
    """Judgments are stored under each judge's own key, whoever is asked first, and alone."""
    judges = TwoJudges()
    with JudgeServer(reply=judges) as server:
        alone = ("--judge_base_url", server.base_url, "--judge_model")
        assert call(evaluate_main, "bot", *alone, STRONG).returncode == 0
        assert call(evaluate_main, "bot", *alone, CHEAP).returncode == 0
        output = judged(server)
        # The cheap one alone skipped what is behind the gate that it failed.
        assert set(judges.asked.values()) == {2}
        assert f"Judges: {CHEAP} (openai {server.base_url}), and {STRONG} (" in output
        assert f"for its {RULE}" in output
        again = judged(server)
        assert "reused" in again
        assert call(evaluate_main, "bot", *alone, STRONG).returncode == 0
    assert len(project.result_paths()) == 4, "another judge, another result"
    with JudgmentStore(project.results / FILE_NAME) as store:
        keys = Counter(each.model for each in store.all() if each.purpose == "verify")
    assert keys == {STRONG: 10, CHEAP: 10}


def test_a_result_without_the_strong_judge_holds(project):
    """Its server names another model than that of the first judge, which decided everything."""
    project.add_answer("answer_2", "Another answer.")
    project.add_script_body(
        """
names = ("sure", "gate") if answer.startswith("Another") else ("sure",)
for name in names:
    leaf = evaluator.add_leaf(name, "", critical=name == "gate")
    await evaluator.verify(f"The lake is {name}.", leaf, None)
return evaluator.get_summary()
"""
    )
    with JudgeServer(reply=TwoJudges()) as server:
        judged(server)
    verified = call(main, "verify-results", "bot")
    assert verified.returncode == 0, verified.stdout
    metrics = call(main, "metrics", "bot").stdout
    assert "out of date" not in metrics
    assert "served in different versions" not in metrics


def test_the_first_judge_may_be_on_another_server(project):
    """An address behind ``@``.

    The strong one's key does not go there unless it is in the environment.
    """
    judges = TwoJudges()
    with JudgeServer(reply=judges) as strong, JudgeServer(reply=judges) as cheap:
        judged(strong, cascade=f"{CHEAP}@{cheap.base_url},{STRONG}")
        assert {body["model"] for body in cheap.requests} == {CHEAP}
        assert {body["model"] for body in strong.requests} == {STRONG}
        pool = project.root / "pool.txt"
        pool.write_text(f"{cheap.base_url}\n")
        judged(strong, "--overwrite", cascade=f"{CHEAP}@{pool},{STRONG}")
        assert {body["model"] for body in strong.requests} == {STRONG}
        assert len(cheap.requests) == 20


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
    """Each has its own price, and nothing more is asked when the dollars are spent.

    Then it continues.
    """
    judges = TwoJudges()
    with JudgeServer(reply=judges) as server:
        words = ("--judge_base_url", server.base_url)
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
    # 40 tokens, 60 cached ones and 10 out, at 2.50, 1.25 and 10 dollars a million, or .15, .075 and
    # .60.
    one, other = (40 * 2.5 + 60 * 1.25 + 100) / 1e6, (40 * 0.15 + 4.5 + 6) / 1e6
    assert sum(costs) == pytest.approx(4 * one + 10 * other, rel=0.01)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--judge_cascade", "one"), "does not name two models"),
        (("--judge_cascade", "a,a"), "does not name two models"),
        (("--judge_cascade", "a,b,c"), "does not name two models"),
        (("--judge_cascade", "a@,b"), "does not name two models"),
        (("--judge_cascade", "a,b", "--judge_model", "c"), "leave --judge_model out"),
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
            f'judge_base_url = "{server.base_url}"\njudge_cascade = "{CHEAP},{STRONG}"\n'
        )
        assert call(evaluate_main, "bot").returncode == 0
        assert judges.asked[STRONG, "sound_gate"] == 0
        assert judges.asked[STRONG, "split"] == 2
        judges.asked.clear()
        alone = call(evaluate_main, "bot", "--judge_model", STRONG)
        assert alone.returncode == 0, alone.stderr
        assert {model for model, _ in judges.asked} == {STRONG}


def test_extractions_are_the_strong_judges(project):
    """The cheap one is asked about claims alone."""
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
    assert (
        f"judged by {STRONG} with {CHEAP} first ({RULE}) (served as {STRONG}-2025-01-01 (fp_1); "
        f"the first as {CHEAP}-2025-01-01 (fp_1)) (provider openai)"
    ) in metrics


def test_two_judges_are_one_way_of_judging(project):
    """Answers that needed only one of the judges are judged like the others.

    The run gives no warning, and names the judges once.
    """
    project.add_answer(task="reed")
    project.add_script_body(
        """
        leaf = evaluator.add_leaf("sure", "", critical=False)
        await evaluator.verify("The lake is sure.", leaf, None)
        return evaluator.get_summary()
        """,
        "reed",
    )
    with JudgeServer(reply=TwoJudges()) as server:
        told = judged(server)
        again = judged(server)
    metrics = call(main, "metrics", "bot").stdout
    status_lines = call(main, "status", "bot").stdout
    assert "judge changed" not in status_lines
    assert not [text for text in (told, again, metrics) if "served in different" in text]
    sentence = " ".join(metrics.split("To copy: ")[1].split())
    assert sentence.count(f"{STRONG} with {CHEAP} first") == 1


@pytest.mark.usefixtures("project")
def test_an_estimate_knows_both_judges():
    """It uses results of the strong judge alone, or the results of both.

    In the first case, the strong judge's doubt stands for the cheap one's.
    """
    with JudgeServer(reply=TwoJudges()) as server:
        alone = ("--judge_base_url", server.base_url, "--judge_model", STRONG)
        assert call(evaluate_main, "bot", *alone).returncode == 0
        told = judged(server, "--estimate")
        # The strong one's ten votes do not differ, so the cheap one is expected to decide all.
        assert "probably 10, based on your 1 earlier result" in told
        assert f"Judge: {STRONG} (openai {server.base_url}), after {CHEAP}" in told
        other = (6 + 4.5 + 6) / 1e6
        assert f"probably ${10 * other:.4f}" in told
        judged(server)
        assert "Judge requests: 0" in judged(server, "--estimate")
        again = judged(server, "--estimate", "--overwrite")
        assert "probably 14, based on your 1 earlier result" in again


def test_batches_have_one_model_each(project, monkeypatch):
    """As a provider demands; a direct run afterwards asks nothing."""
    quickly = partial(sender.BatchPace, pause_s=0.1)
    monkeypatch.setattr(sender, "BatchPace", quickly)
    with BatchServer(TwoJudges()) as server:
        output = judged(server, "--batch", "--batch_poll", "0.01")
        models = [{each["body"]["model"] for each in job.requests} for job in server.jobs]
        assert {frozenset(each) for each in models} == {
            frozenset({CHEAP}),
            frozenset({STRONG}),
        }
        assert len(server.asked) == len(set(server.asked)) == 14
        asked = len(server.requests)
        assert "14 judgments" in output
        for path in project.result_paths():
            path.unlink()
        judged(server)
        assert len(server.requests) == asked
    decided = {name: leaf.evidence.judge for name, leaf in leaves_of(project).items()}
    assert decided["sure"] == CHEAP
    assert decided["split"] == decided["gate"] == STRONG


def test_a_scorer_may_have_two_judges(project):
    """The score is that of ``evaluate``, and the usage is that of both."""
    judges = TwoJudges()
    with JudgeServer(reply=judges) as server:
        judge = cascade(Judge(STRONG, server.base_url), first=CHEAP)
        scripts = project.root / "eval_scripts"
        with Scorer(judge=judge, scripts=scripts) as scorer:
            scored = scorer.score_sync("lake", ANSWER)
    assert scored.result["provenance"]["judge"]["first_model"] == CHEAP
    assert scored.evidence["sure"]["judge"] == CHEAP
    assert scored.evidence["split"]["judge"] == STRONG
    assert scorer.usage.asked.judgments == judges.asked.total() == 14


def test_a_scorers_two_judges_are_two_models():
    with pytest.raises(UsageError, match="does not name two models"):
        cascade(Judge(STRONG), first=STRONG)


def test_a_key_goes_to_no_other_server():
    strong = Judge("m", "http://a/v1", api_key="key")
    here, _ = cascade(strong, "cheap").judges
    there, _ = cascade(strong, "cheap@http://b/v1").judges
    assert (here.base_url, here.api_key) == ("http://a/v1", "key")
    assert (there.base_url, there.api_key) == ("http://b/v1", None)


def test_the_record_names_both_judges():
    strong = Judge("judge-1", "http://large/v1", temperature=0.5)
    record = cascade(strong, "small-1@http://small/v1").record()
    assert record.model_dump(exclude_none=True) == {
        "provider": "openai",
        "endpoint": "openai http://large/v1",
        "model": "judge-1",
        "temperature": 0.5,
        "votes": "always",
        "first_model": "small-1",
        "first_endpoint": "openai http://small/v1",
        "doubt": RULE,
    }
    assert record.as_replay().record(record.endpoint) == record.model_copy(
        update={"provider": "replay"}
    )


def test_lookahead_asks_both(project):
    judges = TwoJudges()
    with JudgeServer(reply=judges) as server:
        judged(server, "--ahead", "gates")
    assert judges.asked.total() == 14
    assert call(main, "verify-results", "bot").returncode == 0
    assert leaves_of(project)["split"].evidence.judge == STRONG


def test_a_first_judge_that_fails_is_no_verdict(project):
    """The strong one does not take its place: the answer has no result, and the reason is said."""
    rejected = status(401, "no such key")
    with (
        JudgeServer(reply=TwoJudges()) as strong,
        JudgeServer(faults=[rejected] * 20) as cheap,
    ):
        options = ("--judge_base_url", strong.base_url, "--judge_cascade")
        cascade = f"{CHEAP}@{cheap.base_url},{STRONG}"
        failed = call(evaluate_main, "bot", *options, cascade)
    assert failed.returncode == 2
    assert not project.result_paths()
    assert "no such key" in failed.stdout + failed.stderr


@pytest.mark.usefixtures("project")
def test_results_of_two_judges_are_judged_again_by_both():
    """Where the command names no other judge."""
    with JudgeServer(reply=TwoJudges()) as server:
        judged(server)
        asked = len(server.requests)
        done = call(main, "rejudge", "bot", "--times", "1")
        assert done.returncode == 0, done.stderr
        models = Counter(body["model"] for body in server.requests[asked:])
    # By then the cheap one votes `no` both times on what it was split on.
    assert models == {CHEAP: 10, STRONG: 2}


def test_a_command_for_one_judge_takes_the_files_strong_one(project):
    """As ``check-judge`` does, which asks one judge after the other."""
    (project.root / "mind2web2.toml").write_text(
        f'judge_cascade = "{CHEAP},{STRONG}"\njudge_base_url = "http://127.0.0.1:9/v1"\n'
    )
    told = call(main, "check-judge", "--estimate", "--sample", 10)
    assert told.returncode == 0, told.stderr
    assert STRONG in told.stdout
    assert "o4-mini" not in told.stdout
