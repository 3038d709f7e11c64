"""What a result was made from, so that it is reused only for the very same evaluation."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from mind2web2 import __version__
from mind2web2.asking import EvaluatorConfig
from mind2web2.prompts import instructions
from mind2web2.recorded_judge import JudgeSettings


class JudgeRecord(BaseModel):
    """Who judged, with which parameters."""

    model_config = ConfigDict(frozen=True)

    provider: str
    endpoint: str
    model: str
    temperature: float | None = None
    reasoning_effort: str | None = None

    @classmethod
    def of(cls, settings: JudgeSettings, endpoint: str) -> JudgeRecord:
        """Return the record of a run's judge."""
        return cls(
            provider=settings.provider,
            endpoint=endpoint,
            model=settings.model,
            temperature=settings.temperature,
            reasoning_effort=settings.reasoning_effort,
        )


class Provenance(BaseModel):
    """All that determines a result.

    Args:
        answer_sha256: of the answer's text as it was judged.
        script: version folder and file name of the eval script.
        script_sha256: of the script's bytes.
        settings_sha256: of our prompts and default settings.
        pages: digest of every page looked up; ``None`` where nothing was stored.
        listing_sha256: of the list of stored pages, where the script asked for it.
        with_captures: whether pages that were not stored would have been captured.
    """

    model_config = ConfigDict(frozen=True)

    answer_sha256: str
    script: str
    script_sha256: str
    settings_sha256: str
    judge: JudgeRecord
    pages: Mapping[str, str | None]
    listing_sha256: str | None = None
    with_captures: bool = False

    def differs_from(self, current: Provenance) -> str | None:
        """Return what has changed since, in words, or ``None`` if nothing has; pages are compared apart."""
        changes = {
            "answer": self.answer_sha256 != current.answer_sha256,
            "script": self.script_sha256 != current.script_sha256,
            "settings": self.settings_sha256 != current.settings_sha256,
            "judge": self.judge != current.judge,
        }
        changed = [name for name, is_different in changes.items() if is_different]
        return ", ".join(changed) or None


def text_sha256(text: str) -> str:
    """Return the hex digest over UTF-8."""
    return hashlib.sha256(text.encode()).hexdigest()


def file_sha256(path: Path) -> str:
    """Return the hex digest of a file's bytes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


@cache
def settings_sha256() -> str:
    """Return the digest of what this version asks judges by default."""
    settings: dict[str, Any] = {
        "version": __version__,
        "config": vars(EvaluatorConfig()),
        "prompts": [instructions("verify"), instructions("extract")],
    }
    return text_sha256(json.dumps(settings, sort_keys=True))
