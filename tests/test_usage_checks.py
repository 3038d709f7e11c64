"""What a result says that its judgments took, held against what is stored of them."""

import pytest

from mind2web2.judgment_reading import StoredReply
from mind2web2.provenance import JudgeRecord, Provenance, Served
from mind2web2.usage_checks import usage_faults

FIRST, LAST = "2026-01-01T10:00:00.000+00:00", "2026-01-01T11:00:00.000+00:00"
REPLIES = [
    StoredReply(
        key=key,
        endpoint="openai",
        model="o4-mini",
        outcome="reply",
        text="{}",
        created=created,
        purpose="verify",
        claim="deep",
        page=None,
        trial=1,
        served_model="m",
        system_fingerprint="fp",
        input_tokens=100,
        cached_tokens=60,
        output_tokens=10,
        attempts=attempts,
        cost_usd=0.001,
    )
    for key, created, attempts in (("a", FIRST, 1), ("b", LAST, 2))
]
USAGE = {"judgments": 2, "input_tokens": 200, "cached_tokens": 120, "output_tokens": 20, "cost_usd": 0.002}
RUN = {"judge_requests": 3, "judge_retries": 1, "judged_from": FIRST, "judged_to": LAST}


def faults(usage=None, run=None, served=None, replies=REPLIES):
    """Return what is wrong about an account, with two judgments named in it."""
    made_from = Provenance(
        answer_sha256="",
        script="",
        script_sha256="",
        settings_sha256="",
        judge=JudgeRecord(provider="openai", endpoint="openai", model="o4-mini"),
        pages={},
        served=served or (Served(model="m", system_fingerprint="fp", judgments=2),),
    )
    result = {"judge_usage": {**USAGE, **(usage or {})}, "run": {**RUN, **(run or {})}}
    return list(usage_faults(result, made_from, [[reply] for reply in replies]))


# With a third judgment that the result does not name.
MORE = {"judgments": 3, "input_tokens": 300, "cached_tokens": 180, "output_tokens": 30, "cost_usd": 0.003}
MORE_RUN = {"judge_requests": 4, "judged_from": "2026-01-01T09:00:00.000+00:00", "judged_to": LAST}
MORE_SERVED = (Served(model="m", system_fingerprint="fp", judgments=3),)


def test_an_account_is_the_sum_of_what_is_stored():
    """Also where a result does not name all that was asked; then it may be more."""
    assert faults() == []
    assert faults(MORE, MORE_RUN, MORE_SERVED) == []
    assert faults({**MORE, "cost_usd": None}, MORE_RUN, MORE_SERVED) == []
    assert faults({"cost_usd": 0.002001}) == []


@pytest.mark.parametrize(
    ("usage", "run", "served", "fault"),
    [
        ({"input_tokens": 199}, {}, None, "input_tokens are 199, and by the stored judgments 200"),
        ({"cached_tokens": None}, {}, None, "cached_tokens are None, and by the stored judgments 120"),
        ({"output_tokens": 21}, {}, None, "output_tokens are 21, and by the stored judgments 20"),
        ({"cost_usd": 0.2}, {}, None, "cost_usd is 0.2, and by the stored judgments 0.002000"),
        ({"cost_usd": None}, {}, None, "cost_usd is None, and by the stored judgments 0.002000"),
        ({}, {"judge_requests": 2}, None, "judge_requests are 2, and by the stored judgments 3"),
        ({}, {"judged_from": LAST}, None, f"judged_from is '{LAST}', and the first stored judgment is"),
        (
            {},
            {"judged_to": "2999"},
            None,
            f"judged_to is '2999', and the last stored judgment is of {LAST}",
        ),
        (
            {},
            {},
            (Served(model="n", judgments=2),),
            "its judge was served as n None (2), and by the stored judgments m fp (2)",
        ),
        ({**MORE, "input_tokens": 1}, MORE_RUN, MORE_SERVED, "stored judgments at least 200"),
        ({**MORE, "cost_usd": 0.001}, MORE_RUN, MORE_SERVED, "stored judgments at least 0.002000"),
        (MORE, {**MORE_RUN, "judge_requests": 1}, MORE_SERVED, "stored judgments at least 3"),
        (MORE, {**MORE_RUN, "judged_from": LAST}, MORE_SERVED, f"the first stored judgment is of {FIRST}"),
        (MORE, MORE_RUN, (Served(model="m", judgments=3),), "served as m None (3), and by the stored"),
    ],
)
def test_a_difference_is_told_with_both_numbers(usage, run, served, fault):
    """One line for each kind."""
    [found] = faults(usage, run, served)
    assert fault in found


def test_what_was_asked_anew_since_is_not_held_against_a_result():
    """Nor what a store of an earlier version does not say, or of which there are several."""
    assert faults({"input_tokens": 1}, {"judged_to": FIRST}) == []
    unpriced = [reply._replace(cost_usd=None) for reply in REPLIES]
    assert faults({"cost_usd": 9.0}, replies=unpriced) == []
    assert faults({"input_tokens": 1}, replies=[]) == []
