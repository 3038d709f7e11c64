"""The scorer with which ``serve`` and ``rehearse`` judge, by the settings of the command."""

from __future__ import annotations

from pathlib import Path

from mind2web2.runs.named_judge import judge_spec
from mind2web2.runs.settings import RunSettings
from mind2web2.scoring.scorer import MissingPages, Scorer
from mind2web2.utils.hidden_keys import hide_memory


def scorer_of(
    settings: RunSettings,
    pages: Path | None,
    missing_pages: MissingPages,
) -> Scorer:
    """Return a scorer by the settings of a command that scores single answers."""
    hide_memory()
    return Scorer(
        judge=judge_spec(settings),
        pages=pages,
        scripts=settings.paths.eval_scripts_root,
        eval_version=settings.eval_version,
        judgments=settings.judgments,
        missing_pages=missing_pages,
        max_answers=settings.max_concurrent_answers or 1,
        max_llm_requests=settings.max_llm_requests,
        max_cost=settings.max_cost,
        answer_timeout=settings.answer_timeout or 0,
        allow_private_network=settings.allow_private_network,
    )
