"""Failures are never verdicts: judges that fail or decline, pages too long, errors inside."""

import asyncio
import re

import pytest
from evaluations import PAGE, evidence_of, started, stored
from pydantic import BaseModel
from scripted_judge import ScriptedJudge

from mind2web2 import CacheFileSys
from mind2web2.errors import (
    CacheReadError,
    ContextTooLongError,
    JudgeDeclinedError,
    JudgeError,
    JudgeOutputError,
    JudgeRequestError,
    JudgeUnavailableError,
    MachineError,
)
from mind2web2.rubric.verdicts import Rejection
from mind2web2.verification.script_access import as_judge


class Town(BaseModel):
    """The template that a script extracts."""

    name: str | None = None


@pytest.fixture
def cache(tmp_path):
    """Return a cache with two pages."""
    return stored(tmp_path)


FAILURES = [
    JudgeRequestError("wrong key"),
    JudgeUnavailableError("rate limit"),
    JudgeOutputError("no structure"),
    JudgeError("other"),
]


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: type(failure).__name__)
@pytest.mark.parametrize("sources", [None, PAGE])
async def test_a_judge_that_fails_decides_nothing(failure, sources, cache):
    """The error itself comes out of every call.

    The leaf stays undecided, and there is no result.
    """
    evaluator = started(ScriptedJudge(failure), cache)
    leaf = evaluator.add_leaf("leaf", "")
    with pytest.raises(type(failure), match=str(failure)):
        await evaluator.verify("claim", leaf, sources)
    assert (leaf.status, leaf.evidence) == ("initialized", None)
    with pytest.raises(JudgeError, match=str(failure)):
        evaluator.get_summary()


@pytest.mark.parametrize(
    "call",
    [
        lambda evaluator: evaluator.verify("claim", evaluator.root.children[0]),
        lambda evaluator: evaluator.verify("claim", None, PAGE),
        lambda evaluator: evaluator.batch_verify(
            [("a", None, None, None), ("b", PAGE, None, None)]
        ),
        lambda evaluator: evaluator.extract("which?", Town),
        lambda evaluator: evaluator.extract("which?", Town, source=PAGE),
        lambda evaluator: evaluator.verifier.simple_verify("claim"),
        lambda evaluator: evaluator.extractor.simple_extract("which?", Town),
    ],
)
async def test_after_a_failure_nothing_more_is_asked(call, cache):
    """A script that swallows the error gets it again from every further call.

    It costs nothing more.
    """
    judge = ScriptedJudge([JudgeUnavailableError("outage")])
    evaluator = started(judge, cache)
    evaluator.add_leaf("leaf", "")
    with pytest.raises(JudgeError):
        await evaluator.verify("claim", None, num_trials=1)
    with pytest.raises(JudgeError, match="outage"):
        await call(evaluator)
    assert len(judge.questions) == 1
    assert evaluator.root.children[0].status == "initialized"
    with pytest.raises(JudgeError, match="outage"):
        evaluator.score()


async def test_a_cancelled_verification_is_no_verdict():
    """The speed of the judge would count: there is no score, whatever the script does about it."""
    asked, limit = asyncio.Event(), asyncio.Semaphore(0)
    evaluator = started(ScriptedJudge(), global_semaphore=limit)
    leaf = evaluator.add_leaf("leaf", "")
    task = asyncio.create_task(evaluator.verify("claim", leaf))
    asyncio.get_running_loop().call_soon(asked.set)
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert leaf.status == "initialized"
    with pytest.raises(JudgeError, match="'leaf'"):
        evaluator.score()
    leaf.decide(0.0, "failed")
    with pytest.raises(JudgeError, match="stopped waiting"):
        evaluator.get_summary()


# Declined content


async def test_content_declined_twice_is_a_vote_against(cache):
    """The leaf fails, the result is kept, and the refusal is listed with node, page and reason."""
    client = ScriptedJudge(JudgeDeclinedError("content filter"))
    judge = as_judge(client)
    evaluator = started(judge, cache)
    leaf = evaluator.add_leaf("leaf", "")
    assert await evaluator.verify("claim", leaf, PAGE, majority_vote=False) is False
    assert len(client.questions) == 2
    assert (leaf.status, leaf.evidence.pages[0].votes[0].declined) == (
        "failed",
        "content filter",
    )
    assert judge.ledger.rejections == [Rejection("leaf", PAGE, "content filter")]
    assert evaluator.score() == 0.0


async def test_content_declined_once_is_asked_again():
    judge = as_judge(ScriptedJudge([JudgeDeclinedError("whim"), True]))
    assert await started(judge).verify("claim", None, num_trials=1)
    assert judge.ledger.rejections == []


async def test_declined_votes_can_be_outvoted():
    judge = as_judge(
        ScriptedJudge([JudgeDeclinedError("no"), JudgeDeclinedError("no"), True, True])
    )
    evaluator = started(judge)
    leaf = evaluator.add_leaf("leaf", "")
    assert await evaluator.verify("claim", leaf)
    assert [vote.declined for vote in leaf.evidence.votes] == ["no", None, None]
    assert len(judge.ledger.rejections) == 1


# Pages too long for the judge


def with_room_for(chars):
    """Return a judge whose context holds pages of this many characters."""

    def reply(question):
        page = question.blocks["page"].split("\n[The page is cut here")[0]
        return True if len(page) <= chars else ContextTooLongError("too long")

    return ScriptedJudge(reply)


@pytest.mark.parametrize(("room", "shown"), [(1000, 1000), (999, 500), (500, 500), (250, 250)])
async def test_a_page_too_long_is_halved_twice_at_most(room, shown, tmp_path):
    """The evidence says how much was shown, and out of how much.

    It also says that the page was cut for the context.
    """
    evaluator = started(with_room_for(room), stored(tmp_path, depth="x" * 1000))
    leaf = evaluator.add_leaf("leaf", "")
    assert await evaluator.verify("claim", leaf, PAGE)
    page = leaf.evidence.pages[0].page
    assert (page.text_chars, page.text_chars_stored) == (shown, 1000)
    assert sum("judge's context" in note for note in page.notes) == {1000: 0, 500: 1, 250: 2}[shown]


async def test_a_page_that_does_not_fit_even_so_is_a_failure(tmp_path):
    judge = with_room_for(249)
    evaluator = started(judge, stored(tmp_path, depth="x" * 1000))
    leaf = evaluator.add_leaf("leaf", "")
    with pytest.raises(ContextTooLongError):
        await evaluator.verify("claim", leaf, PAGE, num_trials=1)
    assert [len(re.findall("x", question.blocks["page"])) for question in judge.questions] == [
        1000,
        500,
        250,
    ]
    assert leaf.status == "initialized"
    with pytest.raises(JudgeError):
        evaluator.score()


async def test_later_trials_do_not_cut_what_was_cut_before(tmp_path):
    """Two cuts are the limit for a page's whole vote."""
    too_long = ContextTooLongError("too long")
    judge = ScriptedJudge([too_long, too_long, True, too_long, too_long, False, too_long])
    evaluator = started(judge, stored(tmp_path, depth="x" * 1000))
    with pytest.raises(ContextTooLongError):
        await evaluator.verify("claim", None, PAGE)
    assert len(judge.questions) == 7


async def test_an_answer_too_long_is_a_failure():
    judge = ScriptedJudge(ContextTooLongError("too long"))
    evaluator = started(judge)
    with pytest.raises(ContextTooLongError):
        await evaluator.verify("claim", None, num_trials=1)
    assert len(judge.questions) == 1
    with pytest.raises(JudgeError):
        evaluator.score()


# Other errors


class BrokenCache:
    """A cache that says it has every page and then raises."""

    def __init__(self, error):
        self.error = error

    def has(self, _url):
        """Say yes."""
        return "web"

    def get_web(self, _url, _get_screenshot=True):
        """Raise."""
        raise self.error


async def test_an_unexpected_error_fails_this_leaf_only():
    evaluator = started(cache=BrokenCache(RuntimeError("parser bug")))
    broken, fine = evaluator.add_leaf("broken", ""), evaluator.add_leaf("fine", "")
    results = await evaluator.batch_verify([("a", PAGE, broken, None), ("b", None, fine, None)])
    assert results == [False, True]
    evidence = evidence_of(evaluator, "broken")
    assert (evidence["decided_by"], evidence["reason"]) == (
        "error",
        "RuntimeError: parser bug",
    )
    assert (broken.status, evaluator.score()) == ("failed", 0.5)


@pytest.mark.parametrize("error", [OSError("too many open files"), MemoryError("no memory")])
async def test_a_machine_that_fails_is_no_verdict(error):
    """The error says nothing about the claim.

    There is no result, from a verification as from an extraction.
    """
    evaluator = started(cache=BrokenCache(error))
    leaf = evaluator.add_leaf("leaf", "")
    with pytest.raises(MachineError, match=PAGE):
        await evaluator.verify("claim", leaf, PAGE)
    assert leaf.status == "initialized"
    with pytest.raises(JudgeError, match=str(error)):
        evaluator.get_summary()


def huge_sources():
    """Name more pages than memory holds."""
    raise MemoryError
    yield PAGE


async def test_memory_that_runs_out_is_no_verdict():
    evaluator = started()
    leaf = evaluator.add_leaf("leaf", "")
    with pytest.raises(MachineError, match="no memory was left to verify node 'leaf'"):
        await evaluator.verify("claim", leaf, huge_sources())
    assert leaf.status == "initialized"
    with pytest.raises(JudgeError, match="no memory was left"):
        evaluator.get_summary()


async def test_an_unexpected_error_puts_the_result_in_doubt():
    judge = as_judge(ScriptedJudge())
    evaluator = started(judge, BrokenCache(RuntimeError("parser bug")))
    await evaluator.verify("claim", evaluator.add_leaf("leaf", ""), PAGE)
    assert judge.ledger.doubts == ["leaf: RuntimeError: parser bug"]


async def test_a_page_that_vanishes_while_it_is_read_cannot_be_had():
    """A cache's KeyError means that nothing is stored (eval-scripts.md)."""
    judge = ScriptedJudge()
    evaluator = started(judge, BrokenCache(KeyError(PAGE)))
    leaf = evaluator.add_leaf("leaf", "")
    assert not await evaluator.verify("claim", leaf, PAGE)
    assert "no longer in the cache" in leaf.evidence.pages[0].reason
    assert await evaluator.extract("which?", Town, source=PAGE) == Town()
    assert judge.questions == []


async def test_a_disk_that_fails_is_no_verdict():
    """A stored page that cannot be read says nothing about the claim: there is no result."""
    evaluator = started(cache=BrokenCache(CacheReadError("disk error")))
    leaf = evaluator.add_leaf("leaf", "")
    for call in (
        evaluator.verify("claim", leaf, PAGE),
        evaluator.batch_verify([("a", PAGE, leaf, None)]),
    ):
        with pytest.raises(CacheReadError, match="disk error"):
            await call
    assert leaf.status == "initialized"
    with pytest.raises(JudgeError, match="disk error"):
        evaluator.get_summary()


async def test_a_page_file_that_cannot_be_read_is_no_verdict(cache):
    """The same with real files: a folder stands where the text should."""
    for text in cache.task_dir.glob("*.txt"):
        text.unlink()
        text.mkdir()
    evaluator = started(cache=CacheFileSys(cache.task_dir))
    with pytest.raises(CacheReadError):
        await evaluator.verify("claim", evaluator.add_leaf("leaf", ""), PAGE)
