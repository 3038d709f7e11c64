"""A claim with several source pages: in which order, how many at once, and what ends the others."""

import asyncio
import base64

import pytest
from evaluations import image, started, stored
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_judge import ScriptedJudge

from mind2web2 import CacheFileSys
from mind2web2.errors import CaptureError, JudgmentMissingError
from mind2web2.judge.answer_judge import AnswerJudge
from mind2web2.judge.caching import CachingJudge
from mind2web2.judge.client_judge import ClientProvider
from mind2web2.judge.spec import JudgeSpec
from mind2web2.judge.store import JudgmentStore
from mind2web2.pages.answer_cache import AnswerCache
from mind2web2.pages.captures import SharedCaptures

SETTINGS = JudgeSpec("o4-mini")


def address(name):
    """Return a page's address."""
    return f"https://lake.example/{name}"


class Camera:
    """Captures any page, and notes which; pages named in ``gone`` cannot be had."""

    def __init__(self, gone=""):
        self.gone, self.names = gone, []
        self.has_begun = {name: asyncio.Event() for name in "abcdef"}

    async def capture_page(self, url, _logger):
        """Return screenshot and text."""
        self.names.append(url[-1])
        self.has_begun[url[-1]].set()
        await asyncio.sleep(0)
        if url[-1] in self.gone:
            raise CaptureError("the server answered 404")
        return base64.b64encode(image()).decode(), f"page {url[-1]}"


class SlowJudge(ScriptedJudge):
    """A judge for whom some pages support any claim.

    It takes as many turns of the loop as told.

    On some pages he waits for an event instead.
    """

    def __init__(self, supporting="", turns=None):
        super().__init__(lambda question: question.blocks["page address"][-1] in supporting)
        self.turns, self.most_at_once, self.pages_at_once, self._pages = (
            turns or {},
            0,
            0,
            [],
        )

    async def async_response(self, *, model, messages, response_format=None):
        """Answer, later."""
        name = "".join(part.get("text", "") for part in messages[-1]["content"])
        page = name.split("<<page address ")[1].split("\n")[1][-1]
        self._pages.append(page)
        self.most_at_once = max(self.most_at_once, len(self._pages))
        self.pages_at_once = max(self.pages_at_once, len(set(self._pages)))
        turns = self.turns.get(page, 1)
        try:
            if isinstance(turns, asyncio.Event):
                async with asyncio.timeout(60):
                    await turns.wait()
            else:
                for _ in range(turns):
                    await asyncio.sleep(0)
            return await super().async_response(
                model=model, messages=messages, response_format=response_format
            )
        finally:
            self._pages.remove(page)

    @property
    def asked(self):
        """Return the pages asked about, one a request, in the order of the replies."""
        return "".join(question.blocks["page address"][-1] for question in self.questions)


async def judged(judge, cache, names, **settings):
    """Return the verdict on a claim with these pages, and its leaf."""
    evaluator = started(judge, cache, **settings)
    leaf = evaluator.add_leaf("leaf", "")
    verdict = await evaluator.verify("claim", leaf, [address(name) for name in names])
    return verdict, leaf


def checked(leaf):
    """Return the pages in the evidence, in order."""
    return "".join(check.url[-1] for check in leaf.evidence.pages)


async def test_pages_at_hand_come_first(tmp_path):
    """A page that supports the claim saves the captures of those that are not stored."""
    camera, judge = Camera(), SlowJudge("d")
    verdict, leaf = await judged(
        judge, stored(tmp_path, b="b", d="d"), "abcd", browser_manager=camera
    )
    assert (verdict, checked(leaf), judge.asked, camera.names) == (
        True,
        "bd",
        "bbdd",
        [],
    )


async def test_pages_to_be_captured_come_next(tmp_path):
    camera, judge = Camera(gone="c"), SlowJudge("e")
    cache = stored(tmp_path, b="b")
    verdict, leaf = await judged(judge, cache, "abcdef", browser_manager=camera)
    assert (verdict, checked(leaf), judge.asked) == (True, "bacde", "bbaaddee")
    assert [check.outcome for check in leaf.evidence.pages][2] == "unavailable"
    assert set("acde") <= set(camera.names)


async def test_the_next_pages_are_captured_meanwhile(tmp_path):
    """Two more of them, once no page at hand has supported the claim."""
    camera = Camera()
    judge = SlowJudge("d", {"a": camera.has_begun["d"]})
    verdict, leaf = await judged(judge, stored(tmp_path, b="b"), "abcdef", browser_manager=camera)
    assert (verdict, checked(leaf), judge.asked) == (True, "bacd", "bbaaccdd")


@pytest.mark.parametrize("names", ["ab", "abc"])
async def test_nothing_is_captured_before_it_is_needed(names, tmp_path):
    camera = Camera()
    judge = SlowJudge(names[-1], {names[-1]: 200})
    cache = stored(tmp_path, **{name: name for name in names})
    assert (await judged(judge, cache, f"def{names}", browser_manager=camera))[0]
    assert camera.names == []


@settings(max_examples=30)
@given(
    supporting=st.sets(st.sampled_from("abcde")),
    cached=st.sets(st.sampled_from("abcde"), min_size=1),
    turns=st.dictionaries(st.sampled_from("abcde"), st.integers(1, 9)),
)
async def test_every_pace_comes_to_the_same_verdict(tmp_path_factory, supporting, cached, turns):
    """The first page that supports the claim decides, those at hand before the others."""
    cache = stored(tmp_path_factory.mktemp("cache"), **{name: name for name in cached})
    judge = SlowJudge(supporting, turns)
    verdict, leaf = await judged(judge, cache, "abcde", browser_manager=Camera())
    order = sorted("abcde", key=lambda name: (name not in cached, name))
    first = next((place for place, name in enumerate(order) if name in supporting), 4)
    assert (verdict, checked(leaf)) == (bool(supporting), "".join(order[: first + 1]))


async def test_a_prefetched_page_that_is_not_used_leaves_no_trace(tmp_path):
    """The answer rests on the pages that were checked, and on no other."""
    cache = AnswerCache(stored(tmp_path, a="a", b="b"))
    judge = SlowJudge("a", {"a": 200})
    verdict, leaf = await judged(judge, cache, "ab")
    assert (verdict, checked(leaf), list(cache.pages_used())) == (
        True,
        "a",
        [address("a")],
    )


# Replays


async def test_a_replay_finds_the_support_wherever_it_is(tmp_path):
    """A replay has a page that was captured after the verdict on another.

    The page itself was never judged.
    """
    cache = stored(tmp_path, b="b")
    with JudgmentStore(None) as store:
        run = CachingJudge(SETTINGS, ClientProvider(SlowJudge("b")), store)
        first = AnswerJudge(run, ("lake", "answer_1.md"))
        assert (await judged(first, cache, "ab", browser_manager=Camera()))[0]
        cache.put_web(address("a"), "a", None)
        replay = AnswerJudge(CachingJudge(SETTINGS, None, store), ("lake", "answer_1.md"))
        verdict, leaf = await judged(replay, cache, "ab")
        assert (verdict, checked(leaf), replay.failure) == (True, "b", None)


@pytest.mark.parametrize("names", ["ab", "a"])
async def test_a_replay_without_a_supporting_page_needs_them_all(names, tmp_path):
    """A missing judgment is not a verdict, so the answer has no result."""
    cache = stored(tmp_path, a="a", b="b")
    with JudgmentStore(None) as store:
        run = CachingJudge(SETTINGS, ClientProvider(SlowJudge()), store)
        assert not (await judged(AnswerJudge(run, ("lake", "answer_1.md")), cache, "b"))[0]
        replay = AnswerJudge(CachingJudge(SETTINGS, None, store), ("lake", "answer_1.md"))
        with pytest.raises(JudgmentMissingError, match=address("a")) as caught:
            await judged(replay, cache, names)
        assert replay.failure is caught.value


async def test_captures_of_a_run_are_shared_between_claims_that_end_early(tmp_path):
    """A claim that is settled gives up its interest in a page.

    It does not take the page from another claim that waits for it.
    """
    camera, cache = Camera(), CacheFileSys(tmp_path)
    judge = SlowJudge("abc", {"a": 3})
    shared = AnswerCache(cache, captures=SharedCaptures.by(camera))
    evaluator = started(judge, shared)
    results = await evaluator.batch_verify(
        [
            ("one", [address(name) for name in "abc"], None, None),
            ("two", address("b"), None, None),
        ]
    )
    assert results == [True, True]
    assert camera.names.count("b") == 1
