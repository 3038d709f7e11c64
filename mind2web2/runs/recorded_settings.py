"""The settings with which a result was made, as far as its provenance tells."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mind2web2.judge.record import REPLAY, JudgeRecord
from mind2web2.llm_client.settings import endpoint_of
from mind2web2.results.provenance import Provenance
from mind2web2.runs.settings import RunSettings, as_of


def recorded_settings(made_from: Provenance) -> RunSettings:
    """Return these settings, and the defaults of the others."""
    judge, as_of_then = made_from.judge, made_from.inputs.as_of
    settings = replace(
        recorded_judge(judge),
        no_screenshots=judge.max_images == 0,
        allow_private_network=made_from.with_private_network,
        no_capture=not (made_from.with_captures or judge.provider == REPLAY),
    )
    if made_from.replayed_from is not None:
        return replace(settings, judgments=Path(made_from.replayed_from.path))
    return replace(settings, as_of=as_of(as_of_then)) if as_of_then else settings


def recorded_judge(judge: JudgeRecord) -> RunSettings:
    """Return settings that name this judge, and nothing else."""
    settings = RunSettings(
        judge_model=judge.model,
        judge_extra_body=judge.extra_body,
        judge_reasoning_effort=judge.reasoning_effort,
        judge_temperature=judge.temperature,
        votes=judge.votes,
    )
    # A client of a caller's own can be named by no setting.
    if judge.provider != "client":
        settings = replace(settings, llm_provider=judge.provider)
    # "openai http://127.0.0.1:8000/v1": the provider's name and the server's address.
    server = judge.endpoint.rpartition(" ")[2]
    is_named = judge.provider != "azure_openai" and "://" in server
    if is_named and judge.endpoint != endpoint_of(judge.provider):
        settings = replace(settings, judge_base_url=server)
    return settings
