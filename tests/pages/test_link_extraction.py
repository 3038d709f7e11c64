"""Links that a judge finds: asked for once, kept, and done without where the judge fails."""

import asyncio

import pytest

from mind2web2.errors import JudgeOutputError, JudgeRequestError, JudgeUnavailableError
from mind2web2.pages.link_judge import LinkJudge

URLS = ["https://example.com/ä"]


class Asked:
    """A judge's function that keeps what it was asked."""

    def __init__(self, error=None):
        self.answers = []
        self.error = error

    async def __call__(self, answer):
        """Return one URL, or raise."""
        self.answers.append(answer)
        if self.error is not None:
            raise self.error
        return URLS


async def test_an_answer_is_asked_about_once(tmp_path):
    """Later runs do not ask again, as long as neither answer nor model changes."""
    asked = Asked()
    for _ in range(2):
        assert await LinkJudge(tmp_path / "kept", "model-1", asked).urls("answer") == URLS
    await LinkJudge(tmp_path / "kept", "model-1", asked).urls("another answer")
    await LinkJudge(tmp_path / "kept", "model-2", asked).urls("answer")
    assert asked.answers == ["answer", "another answer", "answer"]


async def test_kept_replies_do_without_a_judge(tmp_path):
    await LinkJudge(tmp_path, "model-1", Asked()).urls("answer")
    judge = LinkJudge(tmp_path, "model-1", None)
    assert await judge.urls("answer") == URLS
    assert judge.answers_not_judged == 0
    assert await judge.urls("another answer") == []
    assert judge.answers_not_judged == 1


@pytest.mark.parametrize(
    ("error", "asked_again"),
    [
        (JudgeRequestError("wrong key"), False),
        (JudgeUnavailableError("no server"), False),
        (JudgeOutputError("nonsense"), True),
    ],
)
async def test_a_failure_is_a_warning(tmp_path, caplog, error, asked_again):
    """Nothing is kept; the next answer is asked about where it may fare better."""
    asked = Asked(error)
    judge = LinkJudge(tmp_path, "model-1", asked)
    assert await judge.urls("one") == await judge.urls("two") == []
    assert asked.answers == (["one", "two"] if asked_again else ["one"])
    assert judge.answers_not_judged == 2
    assert f"an answer: links that only a model sees are left out: {error}" in caplog.messages
    assert list(tmp_path.iterdir()) == []


async def test_a_judge_that_is_away_is_found_out_once(tmp_path, caplog):
    asked = Asked(JudgeUnavailableError("no server"))
    judge = LinkJudge(tmp_path, "model-1", asked)
    await asyncio.gather(
        *(judge.urls(f"answer {number}", f"lake/{number}.md") for number in range(5))
    )
    assert len(asked.answers) == 1
    assert (judge.answers_not_judged, judge.is_asking) == (5, False)
    [message] = caplog.messages
    assert message in {
        f"lake/{number}.md: links that only a model sees are left out: no server"
        for number in range(5)
    }


@pytest.mark.parametrize(
    "kept", ["", "{", "[]", '{"model": "model-1", "urls": "x"}', "[" * 100_000]
)
async def test_a_damaged_reply_is_asked_for_again(tmp_path, kept):
    await LinkJudge(tmp_path, "model-1", Asked()).urls("answer")
    [path] = tmp_path.iterdir()
    path.write_text(kept, encoding="utf-8")
    assert await LinkJudge(tmp_path, "model-1", Asked()).urls("answer") == URLS
    assert await LinkJudge(tmp_path, "model-1", None).urls("answer") == URLS
