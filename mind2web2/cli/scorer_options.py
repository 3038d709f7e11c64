"""A scorer by the settings of a command: what serve and rehearse judge with."""

from __future__ import annotations

import json
from pathlib import Path

from mind2web2.judge.cascade import JudgeCascade
from mind2web2.runs.paths import paths_of
from mind2web2.runs.settings import RunSettings
from mind2web2.scoring.scorer import Judge, MissingPages, Scorer
from mind2web2.utils.own_memory import hide_memory


def scorer_of(
    settings: RunSettings,
    pages: Path | None,
    missing_pages: MissingPages,
) -> Scorer:
    """Return a scorer by the settings of a command; it takes ``SCORING_DEFAULTS``."""
    hide_memory()
    return Scorer(
        judge=Judge(
            model=settings.model,
            base_url=settings.judge_server(),
            provider=settings.llm_provider,
            temperature=settings.judge_temperature,
            reasoning_effort=settings.judge_reasoning_effort,
            max_images=settings.max_images,
            extra_body=json.loads(settings.judge_extra_body or "{}"),
            outage_wait_s=settings.judge_outage_wait,
            votes=settings.votes,
            first=_first_of(settings.judge_cascade),
        ),
        pages=pages,
        scripts=paths_of(settings).eval_scripts_root,
        eval_version=settings.eval_version,
        judgments=settings.judgments,
        missing_pages=missing_pages,
        max_answers=settings.max_concurrent_answers or 1,
        max_llm_requests=settings.max_llm_requests,
        max_cost=settings.max_cost,
        answer_timeout=settings.answer_timeout or 0,
        allow_private_network=settings.allow_private_network,
        strict=settings.strict,
    )


def _first_of(cascade: JudgeCascade | None) -> str | None:
    if cascade is None:
        return None
    name = cascade.first
    if cascade.server is None:
        return name
    return f"{name}@{cascade.server}"
