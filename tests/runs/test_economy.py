"""``mind2web2 economy``: stored votes by each rule, without a question."""

import json
from random import Random

import pytest
from evaluations import stored
from projects import Project, call, entered, evaluate
from result_parts import shown
from scripted_judge import ScriptedJudge

from mind2web2.cli import main
from mind2web2.judge.settings import JudgeSettings
from mind2web2.rubric.node import VerificationNode
from mind2web2.rubric.tree_writing import tree_as_dict
from mind2web2.rubric.verdicts import (
    Evidence,
    PageCheck,
    PageShown,
    Quote,
    Vote,
    skip_reason,
    trials_needed,
)
from mind2web2.runs.economy import RULES, economy_of, replayed
from mind2web2.runs.result_file import ResultFile

DOUBT, ONCE = RULES["doubt"], RULES["1"]
PASSED, FAILED, SKIPPED = (1.0, "passed"), (0.0, "failed"), (0.0, "skipped")


def votes(pattern, quote="found"):
    """Return votes such as ``yny``, all with such a quotation."""
    return tuple(
        Vote(
            trial=trial,
            supported=word == "y",
            reasoning="",
            quote=Quote(text="x", match=quote),
        )
        for trial, word in enumerate(pattern, 1)
    )


def on_pages(*patterns, **page):
    """Return the evidence of votes on one page after the other."""
    checks = [
        PageCheck(
            url=f"https://lake.example/{number}",
            outcome="supported"
            if 2 * pattern.count("y") > len(pattern)
            else "not_supported",
            page=PageShown(**shown(**page)),
            votes=votes(pattern),
        )
        for number, pattern in enumerate(patterns)
    ]
    return Evidence(decided_by="judge", claim="c", num_trials=3, pages=tuple(checks))


def on_answer(pattern, quote="found", num_trials=3):
    """Return the evidence of votes on the answer alone."""
    return Evidence(
        decided_by="judge",
        claim="c",
        num_trials=num_trials,
        votes=votes(pattern, quote),
    )


def result(*leaves):
    """Return a result with these leaves below its root: (evidence, verdict, is critical)."""
    root = VerificationNode(id="root", desc="", critical=False, strategy="parallel")
    for number, (evidence, (score, status), is_critical) in enumerate(leaves):
        leaf = VerificationNode(
            id=f"leaf{number}", desc="", critical=is_critical, strategy="parallel"
        )
        root.add_node(leaf)
        leaf.evidence, leaf.score, leaf.status = evidence, score, status
    root.compute_score(mutate=True)
    breakdown = [{"verification_tree": tree_as_dict(root)}]
    return ResultFile.of({"final_score": root.score, "eval_breakdown": breakdown})


def figures(found, signs):
    """Return requests, changed verdicts and whether the score changed."""
    by_rule = replayed(found, signs)
    return by_rule.requests, by_rule.changed, by_rule.is_score_changed


@pytest.mark.parametrize(
    ("evidence", "verdict", "always", "doubt", "once"),
    [
        (on_answer("yy"), PASSED, 2, (1, 0, False), (1, 0, False)),
        (on_answer("yny"), PASSED, 3, (1, 0, False), (1, 0, False)),
        (on_answer("ynn"), FAILED, 3, (1, 1, True), (1, 1, True)),
        (on_answer("ynn", "not_found"), FAILED, 3, (3, 0, False), (1, 1, True)),
        (on_answer("y", num_trials=1), PASSED, 0, (0, 0, False), (0, 0, False)),
        (on_pages("nn", "yy"), PASSED, 4, (2, 0, False), (2, 0, False)),
        (on_pages("ynn", "nn"), FAILED, 5, (1, 1, True), (1, 1, True)),
        (
            on_pages("nyy", troubles=("robot_check",)),
            PASSED,
            3,
            (3, 0, False),
            (1, 1, True),
        ),
    ],
)
def test_votes_are_replayed_by_each_rule(evidence, verdict, always, doubt, once):
    """Requests, changed verdicts, and whether the score changes; other numbers of votes are left alone."""
    found = result((evidence, verdict, False))
    assert figures(found, None) == (always, 0, False)
    assert figures(found, DOUBT) == doubt
    assert figures(found, ONCE) == once


def test_a_gate_has_all_votes_unless_it_is_no_sign():
    """A gate that would fail takes the score with it; a gate that would pass has skipped leaves judged."""
    skipped = Evidence(decided_by="prerequisite", reason=skip_reason("leaf0", "failed"))
    gate_fails = result(
        (on_answer("nyy"), PASSED, True), (on_answer("yy"), PASSED, False)
    )
    gate_passes = result((on_answer("ynn"), FAILED, True), (skipped, SKIPPED, False))
    for found, all_votes in ((gate_fails, 4), (gate_passes, 3)):
        assert figures(found, DOUBT) == (all_votes, 0, False)
        assert figures(found, RULES["doubt without gate"])[1:] == (1, True)


def test_shares_are_by_task():
    """Without a task that differs there is an interval all the same, and `always` changes nothing."""
    tasks = {
        f"t{number}": [result((on_answer("yy"), PASSED, False))] * 2
        for number in range(12)
    }
    tasks["t0"] = [result((on_answer("nyy"), PASSED, False))]
    found = economy_of(tasks)
    assert (found.answers, found.tasks, found.claims, found.votes) == (23, 12, 23, 47)
    by_name = {rule.rule: rule for rule in found.rules}
    assert by_name["always"].requests.value == 1
    assert by_name["always"].verdicts.value == 0
    assert by_name["always"].scores.high is None, "it is no finding of these tasks"
    assert by_name["1"].requests.value == 23 / 47
    assert by_name["1"].scores.value == 1 / 23
    assert by_name["1"].scores.low < 1 / 23 < by_name["1"].scores.high


def test_random_flips_show_no_sign():
    """With 3% of them, a rule of doubt takes under 60% of the requests, and keeps most of the flips."""
    draws = Random(5)
    tasks = {f"t{number}": [_flipped(draws) for _ in range(3)] for number in range(60)}
    doubt = next(rule for rule in economy_of(tasks).rules if rule.rule == "doubt")
    assert 0.55 < doubt.requests.value < 0.6
    assert 0.01 < doubt.verdicts.value < 0.03
    assert 0.04 < doubt.scores.value < 0.12


def _flipped(draws):
    """Return a result of twelve claims, two of them gates; 4% of the first quotations are not found."""
    leaves = []
    for number in range(12):
        truth, cast = draws.random() < 0.6, []
        while needed := trials_needed(cast, 3):
            cast += [truth is not (draws.random() < 0.03) for _ in range(needed)]
        verdict = PASSED if 2 * sum(cast) > len(cast) else FAILED
        quote = "not_found" if draws.random() < 0.04 else "found"
        leaves.append(
            (
                on_answer("".join("ny"[vote] for vote in cast), quote),
                verdict,
                number < 2,
            )
        )
    return result(*leaves)


class FickleJudge(ScriptedJudge):
    """A judge whose votes and quotations vary, but not about the gate."""

    def __init__(self, seed):
        draws = Random(seed)
        super().__init__(lambda question: self._reply(draws, question))

    @staticmethod
    def _reply(draws, question):
        is_sure = "gate" in question.claim
        return question.template(
            reasoning="",
            result=is_sure or draws.random() < 0.5,
            quote=draws.choice(["deep and cold", "nowhere"]),
        )


@pytest.mark.parametrize("rule", ["doubt", "1"])
async def test_a_replay_is_the_run_by_that_rule(tmp_path, monkeypatch, rule):
    """The same judgments, judged again by the rule, have the requests and scores that were told."""
    project = entered(tmp_path, monkeypatch)
    project.add_script_body(
        """
        await evaluator.verify("gate", evaluator.add_leaf("gate", "", critical=True), None)
        for number in range(8):
            leaf = evaluator.add_leaf(f"leaf{number}", "", critical=False)
            await evaluator.verify(f"claim {number}", leaf, None)
        return evaluator.get_summary()
        """
    )
    for number in range(6):
        project.add_answer(f"answer_{number}", f"The lake is deep and cold. {number}")
    await evaluate(project, FickleJudge(1))
    before = newest(project)
    told = [replayed(each, RULES[rule]) for each in before]
    await evaluate(
        project,
        None,
        settings=JudgeSettings("replay", "judge-1", votes=rule),
        reuse=False,
    )
    after = newest(project)
    assert [each.requests for each in told] == [vote_count(each) for each in after]
    changed = [
        was.final_score != now.final_score
        for was, now in zip(before, after, strict=True)
    ]
    assert [each.is_score_changed for each in told] == changed
    assert any(changed)
    left_out = call(main, "economy", "bot")
    assert left_out.returncode == 2
    assert "6 by another rule" in left_out.stderr


def newest(project: Project):
    """Return the newest result of each answer."""
    paths = [project.result_paths(f"answer_{number}")[-1] for number in range(6)]
    return [
        ResultFile.of(json.loads(path.read_text(encoding="utf-8"))) for path in paths
    ]


def vote_count(found):
    """Return how many votes a result has."""
    return sum(len(leaf.evidence.votes) for leaf in found.leaves())


async def test_the_command_prints_a_row_for_each_rule(tmp_path, monkeypatch):
    """Also as JSON; nothing is asked, and no key is needed."""
    project = entered(tmp_path, monkeypatch)
    stored(project.root / "cache" / "bot" / "lake")
    project.add_answer()
    project.add_script({"deep": ("The lake is deep.", None)})
    await evaluate(project, FickleJudge(2))
    printed = call(main, "economy", "bot").stdout
    assert "on 1 claim in 1 answer to 1 task" in printed
    assert all(rule in printed for rule in RULES)
    told = json.loads(call(main, "economy", "bot", "--json").stdout)
    assert [rule["rule"] for rule in told["rules"]] == list(RULES)
    assert call(main, "economy", "nobody").returncode == 2
