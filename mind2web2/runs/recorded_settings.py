"""The settings with which a result was made, as far as its provenance tells."""

from __future__ import annotations

from collections.abc import Iterator

from mind2web2.judge.record import REPLAY, JudgeRecord
from mind2web2.llm_client.settings import endpoint_of
from mind2web2.results.provenance import Provenance
from mind2web2.rubric.vote_rule import DEFAULT_TRIALS
from mind2web2.runs.settings import RunSettings, as_of


def recorded_settings(made_from: Provenance) -> dict[str, object]:
    """Return the values of the settings, by their names."""
    return dict(_recorded(made_from))


def _recorded(made_from: Provenance) -> Iterator[tuple[str, object]]:
    judge, inputs = made_from.judge, made_from.inputs
    yield from _of_judge(judge)
    if made_from.replayed_from is not None:
        yield "judgments", made_from.replayed_from.path
    if judge.max_images == 0:
        yield "no_screenshots", True
    if inputs.as_of and made_from.replayed_from is None:
        yield "as_of", as_of(str(inputs.as_of))
    if made_from.with_private_network:
        yield "allow_private_network", True
    if not made_from.with_captures and judge.provider != REPLAY:
        yield "no_capture", True


def judge_settings(judge: JudgeRecord) -> RunSettings:
    """Return settings that name this judge, and nothing else."""
    return RunSettings(**dict(_of_judge(judge)))  # type: ignore[arg-type]  # by their names


def _of_judge(judge: JudgeRecord) -> Iterator[tuple[str, object]]:
    if judge.provider not in ("openai", "client"):
        yield "llm_provider", judge.provider
    yield "judge_model", judge.model
    # "openai http://127.0.0.1:8000/v1": the provider's name and the server's address.
    server = judge.endpoint.rpartition(" ")[2]
    is_named = judge.provider != "azure_openai" and "://" in server
    if is_named and judge.endpoint != endpoint_of(judge.provider):
        yield "judge_base_url", server
    if judge.extra_body:
        yield "judge_extra_body", judge.extra_body
    if judge.reasoning_effort is not None:
        yield "judge_reasoning_effort", judge.reasoning_effort
    if judge.temperature is not None:
        yield "judge_temperature", judge.temperature
    if judge.votes != DEFAULT_TRIALS:
        yield "votes", judge.votes
