"""A judge that misbehaves in every way, request by request and run by run."""

from dataclasses import replace

import pytest
from faults import judge_faults, report
from faults.figures import Figures, together
from faults.schedules import schedule_of
from servers.faulty_judge import FaultyJudge
from servers.faulty_replies import DECLINES, FINAL, HANGS, HARMLESS, TOO_FAST, Fault
from servers.recorded_replies import Question, RecordedReplies

from mind2web2.errors import (
    JudgeError,
    JudgeOutputError,
    JudgeRequestError,
    JudgeUnavailableError,
)
from mind2web2.llm_client import LLMClient
from mind2web2.llm_client.chat import ChatRequest
from mind2web2.llm_client.retries import RetryPolicy
from mind2web2.verification.run_questions import BinaryEvalResult

# `make faults` runs two hundred.
SCHEDULES = 2
RETRY = RetryPolicy(
    tries=3,
    total_s=20,
    outage_wait_s=2,
    first_wait_s=0.001,
    longest_wait_s=0.002,
    request_timeout_s=20,
)
REQUEST = ChatRequest("o4-mini", [{"role": "user", "content": "Is it so?"}], BinaryEvalResult)
UNUSABLE_OUTPUT = {
    Fault.TRUNCATED,
    Fault.COMPLETE_AT_LENGTH,
    Fault.CUT_SILENTLY,
    Fault.WRONG_SHAPE,
    Fault.IN_A_LIST,
    Fault.TWO_OBJECTS,
    Fault.TWO_FENCES,
    Fault.PROSE,
    Fault.NO_CHOICES,
    Fault.NULL_CHOICES,
    Fault.NO_CONTENT,
}
PASSING = set(Fault) - UNUSABLE_OUTPUT - DECLINES - FINAL - HARMLESS


@pytest.fixture(scope="module")
def judge():
    """Return a judge that says yes to whatever nobody has read about."""
    with FaultyJudge(
        RecordedReplies(), of_unknown='{"reasoning": "it is", "result": true}'
    ) as judge:
        yield judge


async def ask(judge, plan, retry=RETRY):
    """Ask once under a plan; return the reply or the failure, the visit, and the client's count."""
    visit = judge.expect("key-1", plan)
    if plan(0, REQUEST, 0) in HANGS:
        retry = replace(retry, request_timeout_s=0.5)
    async with LLMClient(
        "openai", True, base_url=judge.base_url, api_key="key-1", retry=retry
    ) as client:
        try:
            return await client.chat(REQUEST), visit, client.retries
        except JudgeError as failure:
            return failure, visit, client.retries


def at_first(fault):
    """Return the plan by which the first request alone goes wrong."""
    return lambda number, _question, _asked_before: fault if number == 0 else None


def always(fault):
    """Return the plan by which every request goes wrong in the same way."""
    return lambda _number, _question, _asked_before: fault


@pytest.mark.parametrize("fault", sorted(PASSING | UNUSABLE_OUTPUT))
async def test_what_goes_wrong_once_is_asked_again(judge, fault):
    """The second reply counts.

    The first one said the opposite, as far as it said anything.
    """
    reply, visit, retries = await ask(judge, at_first(fault))
    assert reply.value == BinaryEvalResult(reasoning="it is", result=True)
    # A reply that is reset once it was sent may have arrived.
    assert visit.requests == reply.attempts <= 2
    assert visit.requests == 2 or fault is Fault.RESET_AFTER
    assert retries.reasons.total() == visit.requests - 1


@pytest.mark.parametrize("fault", sorted(HARMLESS))
async def test_oddities_are_no_faults(judge, fault):
    """A fence, thoughts, small pieces: nothing is asked again."""
    reply, visit, retries = await ask(judge, always(fault))
    assert reply.value.result is True
    assert (visit.requests, retries.in_words()) == (1, "")


@pytest.mark.parametrize("fault", sorted(DECLINES))
async def test_who_declines_has_said_nothing(judge, fault):
    reply, visit, _ = await ask(judge, always(fault))
    assert reply.value is None
    assert reply.declined
    assert visit.requests == 1


@pytest.mark.parametrize("fault", sorted(PASSING - TOO_FAST - {Fault.RESET_AFTER}))
async def test_retries_end(judge, fault):
    failure, visit, retries = await ask(
        judge, always(fault), replace(RETRY, tries=2, outage_wait_s=0.1)
    )
    assert isinstance(failure, JudgeUnavailableError)
    tries = retries.reasons.total() + 1
    assert tries >= 2
    # A busy server may read a request only after the client's time limit for it.
    assert visit.requests == tries or fault in HANGS
    assert " unavailable: " in str(failure)


@pytest.mark.parametrize("fault", sorted(TOO_FAST))
async def test_a_server_that_lets_nobody_in_is_given_up(judge, fault):
    failure, visit, retries = await ask(judge, always(fault), replace(RETRY, total_s=0.01))
    assert isinstance(failure, JudgeUnavailableError)
    assert visit.requests == 1 + retries.reasons["429"] <= 10


@pytest.mark.parametrize("fault", sorted(UNUSABLE_OUTPUT))
async def test_output_is_asked_for_three_times(judge, fault):
    """A third reply of no use is an error, whatever any of them seems to say."""
    failure, visit, retries = await ask(judge, always(fault))
    assert isinstance(failure, JudgeOutputError)
    assert visit.requests == 3
    assert retries.in_words() == "2 requests tried again (unusable output: 2)"


async def test_two_faults_in_a_row_cost_no_reply(judge):
    kinds = sorted(set(Fault) - FINAL - HANGS)
    for number, first in enumerate(kinds):
        second = kinds[(number * 7 + 3) % len(kinds)]
        if {first, second} <= DECLINES:
            continue
        reply, _, _ = await ask(
            judge,
            lambda sent, *_, plan=(first, second): dict(enumerate(plan)).get(sent),
        )
        # A client declines at the first sign of it; a judge asks it a second time.
        assert reply.declined or reply.value.result is True, (first, second)


@pytest.mark.parametrize("fault", sorted(FINAL))
async def test_what_cannot_pass_is_asked_once(judge, fault):
    """A revoked key, a model that is gone, a quota that is spent."""
    failure, visit, retries = await ask(judge, always(fault))
    assert isinstance(failure, JudgeRequestError)
    assert (visit.requests, retries.in_words()) == (1, "")


def test_a_schedule_follows_from_its_seed():
    """A seed gives the same faults for the same questions, in whatever order they come.

    Another seed gives other faults.
    """
    questions = [Question(f"claim {number}", None, "an answer") for number in range(40)]

    def met(seed, numbers):
        schedule = schedule_of(seed)
        return {
            (question, turn): schedule(0, question, turn)
            for question in numbers
            for turn in range(4)
        }

    seeds = range(25)
    assert [met(seed, questions) for seed in seeds] == [
        met(seed, reversed(questions)) for seed in seeds
    ]
    assert len({str(met(seed, questions)) for seed in seeds}) > len(seeds) / 2
    declined = [
        question
        for seed in seeds
        for question in questions
        if sum(schedule_of(seed)(0, question, turn) in DECLINES for turn in range(8)) > 1
    ]
    assert declined == []


def test_every_fault_is_in_some_schedule():
    schedules = [schedule_of(seed) for seed in range(1, 201)]
    assert {fault for schedule in schedules for fault in (*schedule.faults, schedule.end)} == {
        *Fault,
        None,
    }


def test_faults_leave_scores_right_or_absent():
    figures = judge_faults.run(SCHEDULES, seed=1)
    assert figures.hindrances == ()
    assert figures.is_clean, figures
    assert figures.answers == 9 * figures.disturbances
    # A schedule may go too far for an answer; how many do depends on the order of the requests.
    assert figures.without_result < figures.answers
    assert len(figures.recovery_s) == figures.disturbances == SCHEDULES


def test_the_report_names_what_went_wrong(capsys):
    good = Figures("", disturbances=1, answers=9, recovery_s=(0.5,))
    bad = Figures("", disturbances=1, answers=9, wrong_scores=7, hindrances=("schedule 3: x",))

    def run(*figures):
        return lambda count, seed: together("judge faults", [*figures, Figures("", count, seed)])

    assert report.report([(run(good), 1)], seed=4) == 0
    assert report.report([(run(good, bad), 2)], seed=5) == 1
    printed = capsys.readouterr().out.splitlines()
    assert printed[2].startswith(
        "judge faults: disturbances 4, answers 23, without result 0, wrong scores 7, "
    )
    assert printed[2].endswith("half written files 0, seconds to recover 0.5, at most 0.5")
    assert printed[3] == "  schedule 3: x"
