"""The display of a run."""

import asyncio
import io
import re

import pytest

from mind2web2.cli.console import PlainConsole
from mind2web2.cli.displays import RunDisplay, duration_text
from mind2web2.judge.usage import RunUsage, TaskUsage
from mind2web2.llm_client.chat import Usage
from mind2web2.results.result_file import ResultFile
from mind2web2.runs.answer import AnswerOutcome
from mind2web2.runs.run import RunProgress


def outcome(number, score=None, reason=None, **facts):
    """Return what became of an answer."""
    result = None if score is None else ResultFile.of({"final_score": score})
    return AnswerOutcome("lake", f"answer_{number}.md", result, reason, **facts)


def usage_of_run(asked, reused=0):
    """Return what a run has asked about one task, and how many judgments it has reused."""
    return RunUsage({"lake": TaskUsage(asked, Usage(judgments=reused))})


async def shown(progress, totals, *, terminal, width=100):
    """Return what is shown of a run in this state."""
    output = io.StringIO()
    console = PlainConsole(file=output, force_terminal=terminal, width=width, color_system=None)
    async with RunDisplay(console, progress, totals):
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    return output.getvalue()


def progress_of(*outcomes, running=()):
    """Return a run's state."""
    return RunProgress(
        answers_total=9,
        tasks_total=3,
        tasks_done=1,
        outcomes=list(outcomes),
        running=dict.fromkeys(running),
    )


async def test_elsewhere_than_on_a_terminal_there_is_a_line_an_answer():
    reason = ", ".join(["the judge is out of reach"] * 20)
    progress = progress_of(
        outcome(2, 0.5),
        outcome(1, None, reason),
        outcome(3, 1.0, reused=True),
        outcome(4, None, reason),
        outcome(5, 0.25, changed="answer changed"),
    )
    text = await shown(progress, RunUsage(), terminal=False)
    assert text.splitlines() == [
        "[1/9] lake/answer_2.md: 0.50",
        f"[2/9] lake/answer_1.md: no result: {reason}",
        "[3/9] lake/answer_3.md: 1, reused",
        "[4/9] lake/answer_4.md: no result: the same as lake/answer_1.md",
        "[5/9] lake/answer_5.md: 0.25 (judged again: answer changed)",
    ]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (59.4, "59 s"), (185, "3 min 05 s"), (3599.6, "1 h 00 min")],
)
def test_times_have_the_units_that_matter(seconds, text):
    assert duration_text(seconds) == text


def test_the_totals_tell_elapsed_and_remaining_time():
    progress = progress_of(*(outcome(number, 1.0, reused=True) for number in range(3)))
    display = RunDisplay(
        PlainConsole(file=io.StringIO()), progress, usage_of_run(Usage(judgments=7))
    )
    assert re.search(r"7 judgments asked, .*; [0-9]+ s elapsed$", display.totals_line())
    progress.outcomes += [outcome(number, 1.0) for number in range(3)]
    assert re.search(r"elapsed, about [0-9]+ s left$", display.totals_line())


async def test_the_last_outcomes_are_printed_too():
    output = io.StringIO()
    progress = progress_of()
    async with RunDisplay(PlainConsole(file=output, width=100), progress, RunUsage()):
        progress.outcomes.append(outcome(1, 1.0))
    assert output.getvalue() == "[1/9] lake/answer_1.md: 1\n"


async def test_on_a_terminal_there_is_a_live_display():
    """Answers, tasks, requests, tokens and cost so far, and what is being worked on."""
    totals = usage_of_run(Usage(1000, 0, 234, judgments=12, cost_usd=0.5), reused=3)
    running = [f"lake/answer_{number}" for number in range(6)]
    text = await shown(progress_of(outcome(1, 1.0), running=running), totals, terminal=True)
    for words in (
        "[1/9] lake/answer_1.md: 1",
        "1/9 answers",
        "1/3 tasks",
        "12 judgments asked, 3 reused, 1,234 tokens, $0.5000",
        "lake/answer_0, lake/answer_1, lake/answer_2, lake/answer_3 and 2 more",
    ):
        assert words in text


async def test_the_live_display_fits_a_narrow_terminal():
    """No line is cut or wrapped at the usual width."""
    totals = usage_of_run(Usage(10**9, 0, 234, judgments=120_000, cost_usd=1234.5), reused=3000)
    text = await shown(progress_of(outcome(1, 1.0)), totals, terminal=True, width=80)
    assert totals.in_words() in text
    assert "1/9 answers" in text
    assert "…" not in text


def test_an_unknown_price_is_reported():
    """Tokens are shown all the same."""
    totals = usage_of_run(Usage(1, 0, 1, judgments=1, cost_usd=None))
    assert totals.in_words() == "1 judgment asked, 0 reused, 2 tokens, price unknown"


def test_rate_limits_and_retries_are_reported():
    """Refusals and the time that was waited, and nothing where there was neither."""
    totals = RunUsage()
    assert "rate limited" not in totals.in_words()
    totals.slowdown.refusals, totals.slowdown.waited_s = 12, 34.2
    assert totals.in_words().endswith("; rate limit: 12 refused (429), requests held back for 34 s")
