"""Records of skips, which runs of earlier versions made: a replay follows them."""

from datetime import UTC, datetime

from projects import SETTINGS, TASK, ClaimJudge, Project, evaluate

from mind2web2.judge.judgment import Judgment, gate_key
from mind2web2.judge.spec import JudgeSpec
from mind2web2.judge.store import FILE_NAME, JudgmentStore

REASON = "not judged, because 'gate' failed"
BODY = """\
gate, after = (evaluator.add_leaf(name, name) for name in ("gate", "after"))
await asyncio.gather(
    evaluator.verify("wrong", gate), evaluator.verify("right", after, extra_prerequisites=[gate])
)
return evaluator.get_summary()
"""


def gate(ordinal=1, settings=SETTINGS):
    """Return the record of a verification that was skipped."""
    judge = (settings.model, settings.temperature, settings.reasoning_effort)
    named = (TASK, "answer_1.md", "after", "right", ordinal)
    return Judgment(
        key=gate_key(judge, *named),
        endpoint="the judge of the tests",
        model=settings.model,
        outcome="skipped",
        text=REASON,
        created=datetime.now(UTC).isoformat(),
        task_id=TASK,
        answer_name="answer_1.md",
        purpose="gate",
        node="after",
        claim="right",
    )


async def statuses(project, client, **settings):
    """Return the statuses of the two leaves."""
    [outcome] = await evaluate(project, client, **settings)
    assert outcome.reason is None
    tree = outcome.result.document["eval_breakdown"][0]["verification_tree"]
    return [node["status"] for node in tree["children"]]


async def test_a_replay_makes_the_skips_that_a_run_has_recorded(tmp_path):
    project = Project(tmp_path)
    project.add_answer()
    project.add_script_body(BODY)
    judge = ClaimJudge(lambda claim: claim == "right")
    assert await statuses(project, judge) == ["failed", "passed"]
    replay = JudgeSpec(SETTINGS.model, provider="replay")
    again = {"settings": replay, "reuse": False}
    assert await statuses(project, None, **again) == ["failed", "passed"]
    with JudgmentStore(project.results / FILE_NAME) as store:
        store.add([gate()])
    assert await statuses(project, None, **again) == ["failed", "skipped"]


def test_records_are_those_of_the_judge_and_the_ordinal():
    other = JudgeSpec("judge-2")
    judge = (SETTINGS.model, None, None)
    with JudgmentStore(None) as store:
        store.add([gate(1), gate(3), gate(2, other)])
        found = store.recorded_skips(judge, (TASK, "answer_1.md"))
        assert sorted(each.ordinal for each in found) == [1, 3]
        assert store.recorded_skips(judge, (TASK, "answer_2.md")) == []
