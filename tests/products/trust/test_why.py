"""``mind2web2 compare --why``: what moved a score, from stored replies."""

import json
import random
import shutil
from fractions import Fraction
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from planted_changes import FACTS, copy_agent, plant, planted, values_of
from projects import AGENT, call
from servers.judge_server import JudgeServer
from servers.recorded_replies import RecordedReplies

from mind2web2.cli import main
from mind2web2_trust.why.shares import CAUSES, Bounds, corners, shares

TASKS = ["lake", "hill"]


@pytest.fixture
def changes(tmp_path, monkeypatch):
    """Return a project whose agent was judged, with a copy of the agent to change."""
    monkeypatch.chdir(tmp_path)
    with planted(tmp_path, monkeypatch.setenv, TASKS) as found:
        copy_agent(found)
        yield found


def why(*words, status=0):
    """Return the printed figures."""
    run = call(main, "compare", *words, "--why", "--json")
    assert (run.returncode, run.stderr) == (status, "")
    return json.loads(run.stdout)


def share_by_cause(found):
    """Return the shares by cause."""
    return {share["cause"]: share["share"] for share in found["shares"]}


@pytest.mark.parametrize("cause", ["rubric", "pages", "answers", "judge"])
def test_one_change_has_the_whole_difference(changes, cause):
    options = plant(changes, cause, random.Random(cause))
    changes.evaluate("other", *options)
    asked = len(changes.judge.asked)
    found = why(AGENT, "other")
    assert found["difference"] != 0
    assert share_by_cause(found) == {cause: found["difference"]}
    assert {leaf["cause"] for leaf in found["leaves"]} <= {cause}
    assert len(changes.judge.asked) == asked


def test_several_changes_sum_to_the_difference(changes):
    """Replies that no side has are asked for; then all shares are known."""
    options = []
    for cause in ("rubric", "pages", "answers", "judge"):
        options += plant(changes, cause, random.Random(cause))
    changes.evaluate("other", *options)
    bounds = why(AGENT, "other", status=1)
    assert bounds["missing"] > 0
    assert all(share["least"] <= share["most"] for share in bounds["shares"])
    asked = len(changes.judge.asked)
    assert why(AGENT, "other", "--ask", "--estimate", status=1) == bounds
    assert len(changes.judge.asked) == asked
    found = why(AGENT, "other", "--ask")
    assert len(changes.judge.asked) - asked == bounds["missing"]
    parts = share_by_cause(found)
    assert set(parts) == {"rubric", "pages", "answers", "judge"}
    assert sum(parts.values()) == pytest.approx(found["difference"], abs=1e-12)
    for share, bound in zip(found["shares"], bounds["shares"], strict=True):
        assert bound["least"] <= share["share"] <= bound["most"]
    # The replies that were asked for are stored.
    assert why(AGENT, "other") == found


def test_where_nothing_changed_nothing_is_shared(changes):
    changes.evaluate("other")
    found = why(AGENT, "other")
    assert (found["difference"], found["shares"], found["missing"]) == (0.0, [], 0)
    text = call(main, "compare", AGENT, "other", "--why").stdout
    assert text == f"other scores as {AGENT}: nothing that moves a score differs.\n"


def test_another_script_version_asks_for_what_it_changed_alone(changes):
    """One reworded claim in one task: two votes on it, and nothing else."""
    shutil.copytree("eval_scripts/v1", "eval_scripts/v2")
    changes.script("hill", "v2", rounding={"length": " or so"})
    missing = why(AGENT, "--with", "eval_version=v2", status=1)
    share = missing["shares"][0]
    assert (share["cause"], share["share"], missing["missing"]) == ("rubric", None, 2)
    changes.judge.asked.clear()
    found = why(AGENT, "--with", "eval_version=v2", "--ask")
    length = values_of("hill")["length"] + 1
    assert changes.judge.asked == [f"The length is {length} m or so."] * 2
    assert (found["missing"], share_by_cause(found)) == (0, {"rubric": 0.0})


def test_leaves_are_matched_by_claim_where_ids_changed(changes):
    shutil.copytree("eval_scripts/v1", "eval_scripts/v2")
    for task in TASKS:
        changes.script(task, "v2", prefix="fact_", facts=FACTS[1:])
    found = why(AGENT, "--with", "eval_version=v2")
    assert found["leaves"] == []
    assert found["added"] == []
    assert set(found["removed"]) == {f"{task}/answer_1/{FACTS[0]}" for task in TASKS}
    assert found["difference"] == share_by_cause(found)["rubric"] != 0


def test_two_captures_and_two_judges_of_one_agent(changes):
    """Two folders of pages, and results in two folders."""
    shutil.copytree("cache", "cache_new")
    shutil.rmtree("cache/other")
    shutil.copytree("cache_new/bot/lake", "cache/other/lake")
    changes.page("other", "lake", "depth", 5)
    shutil.rmtree("cache_new/bot/lake")
    shutil.copytree("cache/other/lake", "cache_new/bot/lake")
    words = ("--cache_root", "cache_new", "--eval_results_root", "results_new")
    changes.judge.wrong["judge-2"] = {("hill", "depth")}
    changes.evaluate(AGENT, *words, "--judge_model", "judge-2")
    changed = [
        f"--with={each}" for each in ("cache_root=cache_new", "eval_results_root=results_new")
    ]
    found = why(AGENT, *changed, "--ask")
    assert set(share_by_cause(found)) <= {"pages", "judge"}
    assert sum(share_by_cause(found).values()) == pytest.approx(found["difference"], abs=1e-12)


def test_the_cache_stays_as_it_is(changes):
    """Pages of both sides are mixed in copies alone."""
    for cause in ("pages", "answers"):
        plant(changes, cause, random.Random(cause))
    changes.evaluate("other")
    before = _checksums("cache", changes.root)
    why(AGENT, "other", "--ask")
    assert _checksums("cache", changes.root) == before


def _checksums(folder, root):
    return {
        path: sha256(path.read_bytes()).hexdigest()
        for path in (root / folder).rglob("*")
        if path.is_file()
    }


def test_a_page_that_was_replaced_since_leaves_bounds(changes):
    """The first side cannot be evaluated again; both scores are known, and their shares are not."""
    options = plant(changes, "rubric", random.Random("rubric"))
    plant(changes, "pages", random.Random("pages"))
    changes.evaluate("other", *options)
    for task in TASKS:
        changes.page(AGENT, task, "depth", 1)
    found = why(AGENT, "other", status=1)
    assert found["difference"] is not None
    assert found["gone"] == {"an answer or page has changed since it was judged": 1}


def test_what_one_reads(changes):
    changes.judge.wrong["judge-2"] = {("hill", "depth")}
    changes.evaluate("other", "--judge_model", "judge-2")
    text = call(main, "compare", AGENT, "other", "--why").stdout
    claim = next(claim for claim in changes.judge.asked if claim.startswith("The depth"))
    assert "judge, votes or prompts" in text
    assert "hill/answer_1/depth  -0.13  judge, votes or prompts" in text
    assert "did not pass" in text and "by judge-2" in text and claim[:12] in text
    assert text.splitlines()[-1].startswith(
        "From bot to other, partial completion moved by -0.13 (0.75 to 0.63): judge, votes or prompts -0.13"
    )
    assert json.loads((changes.root / "eval_results/other/why.json").read_text())["first"] == AGENT


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([AGENT, "--why"], f"compare {AGENT} --why --with eval_version=NEW"),
        ([AGENT, "--why", "--with", "colour=red"], "--with colour=red: name one of"),
        ([AGENT, "--why", "--with", "votes=two"], "--with votes=two: "),
        ([AGENT, "--why", "--with", "eval_version=v9"], "no eval version v9"),
        ([AGENT, "nobody", "--why"], "no results of agent nobody"),
        ([AGENT, "nobody", "--ask"], "--with, --ask and --estimate go with --why"),
        ([AGENT, "--why", "--with", "cache_root=cash"], "there is no folder cash/bot"),
        ([AGENT, "--why", "--with", "llm_provider=replay"], "--with llm_provider=replay: "),
        ([AGENT, AGENT, "--why", "--with", "votes=1"], "bot has results of its own"),
        ([AGENT, "nobody", "--why", "--fail_if_worse"], "--why tests nothing"),
    ],
)
def test_mistakes_are_named(changes, words, message):
    assert changes.tasks
    run = call(main, "compare", *words)
    assert run.returncode == 2
    assert message in run.stderr


def test_a_judge_that_was_replayed_cannot_be_asked(changes):
    """A script version lacks two of its replies; another judge has a server."""
    stored = "eval_results/bot/judgments.sqlite3"
    changes.evaluate("other", "--llm_provider", "replay", "--judgments", stored)
    # Its first votes are stored, whatever server gave them.
    assert why("other", "--with", "votes=1")["missing"] == 0
    shutil.copytree("eval_scripts/v1", "eval_scripts/v2")
    changes.script("hill", "v2", rounding={"length": " or so"})
    changes.judge.asked.clear()
    found = why("other", "--with", "eval_version=v2", "--ask", "--max_cost", "1", status=1)
    (reason,) = found["gone"]
    assert "names no server to ask" in reason
    assert (found["missing"], changes.judge.asked) == (2, [])
    judge = [f"--with={each}" for each in ("judge_model=judge-2", "llm_provider=openai")]
    found = why("other", *judge, "--ask")
    assert (found["missing"], found["difference"]) == (0, 0.0)


def test_the_claims_of_extracted_values_are_counted(tmp_path, monkeypatch):
    """Another judge has extracted nothing yet: the values of the first one stand in."""
    monkeypatch.chdir(tmp_path)
    assert call(main, "example").returncode == 0
    monkeypatch.chdir(tmp_path / "example")
    with JudgeServer(RecordedReplies()) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "dummy")
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        judge = ["--with=judge_model=gpt-5-mini", "--with=llm_provider=openai", "--ask"]
        estimated = why("example", *judge, "--estimate", status=1)
        assert server.requests == []
        text = call(main, "compare", "example", "--why", *judge, "--estimate").stdout
        spent = call(main, "compare", "example", "--why", *judge).stdout
        found = why("example", *judge)
    asked = len(server.requests)
    assert "\n142 judgments asked, 2 reused, " in spent
    assert "Nothing was asked" not in spent
    assert (found["missing"], found["difference"]) == (0, 0.0)
    assert (asked, estimated["missing"], estimated["is_least"]) == (142, 156, False)
    assert estimated["leaves"] == []
    assert "Missing: about 156 judge replies ($0.28" in text
    assert "Nothing was asked." in text


def test_claims_of_values_that_no_judge_extracted_are_not_counted(tmp_path, monkeypatch):
    """The script asks for them in other words."""
    monkeypatch.chdir(tmp_path)
    assert call(main, "example").returncode == 0
    monkeypatch.chdir(tmp_path / "example")
    shutil.copytree("eval_scripts/example", "eval_scripts/v2")
    script = Path("eval_scripts/v2/library_facts.py")
    script.write_text(
        script.read_text().replace("prompt=EXTRACT_FACTS", "prompt='Now: ' + EXTRACT_FACTS")
    )
    words = ("compare", "example", "--why", "--with", "eval_version=v2")
    text = call(main, *words).stdout
    assert "Missing: at least 3 judge replies (price unknown)." in text


SCORES = st.lists(st.fractions(0, 1), min_size=16, max_size=16)


@given(SCORES, st.integers(1, 4))
def test_shares_sum_exactly(scores, count):
    causes = CAUSES[:count]
    by_corner = dict(zip(corners(causes), scores, strict=False))
    found = shares(causes, lambda corner: Bounds(by_corner[corner], by_corner[corner]))
    difference = by_corner[frozenset(causes)] - by_corner[frozenset()]
    assert sum((share.low for share in found.values()), Fraction(0)) == difference
    assert all(share.known is not None for share in found.values())


@given(SCORES, SCORES, SCORES)
def test_shares_are_within_their_bounds(first, second, inside):
    causes = CAUSES[:3]
    bounds = {
        corner: Bounds(min(one, other), max(one, other))
        for corner, one, other in zip(corners(causes), first, second, strict=False)
    }
    known = {
        corner: bound.low + (bound.high - bound.low) * part
        for (corner, bound), part in zip(bounds.items(), inside, strict=False)
    }
    wide = shares(causes, bounds.__getitem__)
    exact = shares(causes, lambda corner: Bounds(known[corner], known[corner]))
    assert all(wide[cause].low <= exact[cause].low <= wide[cause].high for cause in causes)


def test_an_answer_without_its_result_file_is_left_out(changes):
    """Its score stands in the summary of the task alone."""
    changes.evaluate("other")
    for path in (changes.root / "eval_results/other/lake/answer_1/results").iterdir():
        path.unlink()
    found = why(AGENT, "other")
    assert (found["answers"], found["left_out"], found["difference"]) == (1, 1, 0.0)


@pytest.fixture
def facts(changes):
    """Let the script of a task read which facts it asks about, and return that file."""
    script = changes.root / "eval_scripts/v1/hill.py"
    listed = f"for name in {FACTS!r}:"
    text = script.read_text()
    assert listed in text
    other = "for name in open(__file__.rpartition('/')[0] + '/facts').read().split():"
    script.write_text(text.replace(listed, other))
    path = script.with_name("facts")
    path.write_text(" ".join(FACTS))
    changes.evaluate(AGENT)
    return path


def test_a_file_that_a_script_reads_is_not_taken_for_the_judge(facts):
    """The result was made while that file named more facts."""
    facts.write_text(" ".join(FACTS[:2]))
    found = why(AGENT, "--with", "votes=1", "--task_id", "hill")
    assert share_by_cause(found) == {"judge": 0.0, "other": found["difference"]}
    assert found["difference"] != 0


def test_a_script_is_found_by_its_folder_first(facts):
    """An earlier folder has the same script beside another file."""
    shutil.copytree("eval_scripts/v1", "eval_scripts/a_copy")
    facts.parent.with_name("a_copy").joinpath("facts").write_text(" ".join(FACTS[:2]))
    found = why(AGENT, "--with", "votes=1", "--task_id", "hill")
    assert share_by_cause(found) == {"judge": 0.0}


def test_judges_are_asked_within_the_cost_together(changes):
    """The second judge costs ten times as much as the first; a message names the whole limit."""
    prices = "\n".join(f"[prices.judge-{n}]\ninput = {10**n}\noutput = {10**n}" for n in (1, 2))
    changes.project.add_settings(prices)
    words = ("--with", "judge_model=judge-2", "--ask", "--max_cost", "0.00001")
    changes.judge.asked.clear()
    found = why(AGENT, *words, status=1)
    assert (len(changes.judge.asked), found["difference"]) == (0, None)
    assert all("max_cost 0.00001" in reason for reason in found["gone"]) and found["gone"]


def test_tasks_are_chosen_before_their_scripts_are_looked_for(changes):
    (changes.root / "eval_scripts/v2").mkdir()
    changes.script("hill", "v2", facts=FACTS[1:])
    found = why(AGENT, "--with", "eval_version=v2", "--task_id", "hill")
    assert (found["tasks"], found["missing"]) == (1, 0)
    assert not (changes.root / "eval_results/bot/why.json").exists()


def test_another_project_is_changed_within_itself(changes, monkeypatch, tmp_path_factory):
    shutil.copytree("eval_scripts/v1", "eval_scripts/v2")
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    found = why(f"{changes.root}/eval_results/bot", "--with", "eval_version=v2")
    assert found["shares"] == []


def test_replies_that_are_gone_are_named(changes):
    changes.evaluate("other")
    (changes.root / "eval_results/other/judgments.sqlite3").unlink()
    run = call(main, "compare", AGENT, "other", "--why")
    assert run.returncode == 2
    assert "no judgments at eval_results/other/judgments.sqlite3" in run.stderr


def test_an_unknown_price_is_named_before_anything_is_asked(changes):
    changes.judge.asked.clear()
    words = ("--with", "judge_model=judge-2", "--ask", "--max_cost", "1")
    run = call(main, "compare", AGENT, "--why", *words)
    assert (run.returncode, run.stderr.count("\n"), changes.judge.asked) == (2, 1, [])
    assert "price" in run.stderr
