"""Whether a result's account of the judge is what its stored judgments add up to; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mind2web2.judgment_reading import StoredReply
from mind2web2.provenance import Provenance

_TOKENS = ("input_tokens", "cached_tokens", "output_tokens")
# Dollars are written with six digits.
_TOLERANCE_USD = 1.01e-6


def usage_faults(
    result: Mapping[str, Any], made_from: Provenance, named: Sequence[Sequence[StoredReply]]
) -> Iterator[str]:
    """Yield where the account of a result is not what is stored of its judgments.

    What a script asks itself, what was asked again about a leaf and the like are in the account, and a result
    does not name them; equal questions are in it several times. Then the account can only be held to be at
    least what is named.

    Args:
        named: for each judgment that votes or extractions name, once, what is stored under its key.
    """
    usage, run = result.get("judge_usage"), result.get("run")
    if not isinstance(usage, Mapping) or not isinstance(run, Mapping):
        return
    replies = [some[0] for some in named if len(some) == 1]
    judged_to = run.get("judged_to")
    # Which of several servers a replay has taken, or what was there before it was asked anew, is not known.
    if not replies or any(reply.created > str(judged_to) for reply in replies):
        return
    is_all = len(replies) == usage.get("judgments")
    yield from _served_faults(made_from, replies, is_all)
    for name in _TOKENS:
        yield from _sum_fault(name, usage.get(name), sum(getattr(reply, name) for reply in replies), is_all)
    attempts = sum(reply.attempts for reply in replies)
    yield from _sum_fault("judge_requests", run.get("judge_requests"), attempts, is_all)
    yield from _cost_faults(usage.get("cost_usd"), replies, is_all)
    yield from _time_faults(run, replies, is_all)


def _served_faults(made_from: Provenance, replies: Sequence[StoredReply], is_all: bool) -> Iterator[str]:
    stored = Counter((reply.served_model, reply.system_fingerprint) for reply in replies)
    said = Counter({(one.model, one.system_fingerprint): one.judgments for one in made_from.served})
    if said != stored if is_all else not stored <= said:
        yield f"its judge was served as {_in_words(said)}, and by the stored judgments {_in_words(stored)}"


def _in_words(served: Counter[tuple[str | None, str | None]]) -> str:
    ordered = sorted(served.items(), key=str)
    return ", ".join(f"{model} {fingerprint} ({count})" for (model, fingerprint), count in ordered)


def _sum_fault(name: str, said: object, stored: int, is_all: bool) -> Iterator[str]:
    if isinstance(said, int) and (said == stored if is_all else said >= stored):
        return
    yield f"{name} are {said!r}, and by the stored judgments {'' if is_all else 'at least '}{stored}"


def _cost_faults(said: object, replies: Sequence[StoredReply], is_all: bool) -> Iterator[str]:
    costs = [reply.cost_usd for reply in replies if reply.cost_usd is not None]
    # An unknown price makes the sum unknown; older stores have none, whatever the price.
    if len(costs) < len(replies) or (said is None and not is_all):
        return
    stored = sum(costs)
    if isinstance(said, int | float):
        difference = said - stored
        if abs(difference) < _TOLERANCE_USD if is_all else difference > -_TOLERANCE_USD:
            return
    yield f"cost_usd is {said!r}, and by the stored judgments {'' if is_all else 'at least '}{stored:.6f}"


def _time_faults(run: Mapping[str, Any], replies: Sequence[StoredReply], is_all: bool) -> Iterator[str]:
    first = min(reply.created for reply in replies)
    said = run.get("judged_from")
    if not isinstance(said, str) or (said != first if is_all else said > first):
        yield f"judged_from is {said!r}, and the first stored judgment is of {first}"
    last = max(reply.created for reply in replies)
    if is_all and run.get("judged_to") != last:
        yield f"judged_to is {run.get('judged_to')!r}, and the last stored judgment is of {last}"
