"""What a result was made from, so that it is reused only for the very same evaluation."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mind2web2 import __version__
from mind2web2.capture.pdf import RenderedPdf
from mind2web2.capture.record import CaptureRecord, Trouble, TroubleKind, trouble_notes
from mind2web2.judge.caching import JudgeSettings
from mind2web2.judge.store import JudgmentSource
from mind2web2.llm_client.chat import Completion, ImageLimit, Message
from mind2web2.llm_client.structured_output import (
    InvalidOutputError,
    repair_messages,
    schema_of,
    schema_text,
)
from mind2web2.pages.library import NO_SCREENSHOT, page_content, pdf_notes, screenshot_note
from mind2web2.pages.prepared import PageSettings, PreparedPage
from mind2web2.prompts import BlockChain, HashedText
from mind2web2.scripts.inputs import ScriptInputs
from mind2web2.utils.files import text_sha256
from mind2web2.verification.claims import BinaryEvalResult
from mind2web2.verification.context import EvaluatorConfig
from mind2web2.verification.messages import NO_INSTRUCTION, extraction_messages, verification_messages

# What asks judges, and what renders and scales the pages that they are shown.
_SHAPING_LIBRARIES = ("anthropic", "httpx2", "openai", "patchright", "pillow", "pydantic", "pypdfium2")


class JudgeRecord(BaseModel):
    """Who judged, with which parameters."""

    model_config = ConfigDict(frozen=True)

    provider: str
    endpoint: str
    model: str
    temperature: float | None = None
    reasoning_effort: str | None = None
    max_images: int | None = None

    def in_words(self) -> str:
        """Return the model, its server and the parameters that are set."""
        named = {"temperature": self.temperature, "effort": self.reasoning_effort}
        parameters = "".join(f", {name} {value}" for name, value in named.items() if value is not None)
        return f"{self.model} at {self.endpoint}{parameters}"

    def change_to(self, current: JudgeRecord) -> str:
        """Return how the judge of an earlier result differs from the present one."""
        if self.model_copy(update={"max_images": current.max_images}) == current:
            shown = "all images" if self.max_images is None else f"{self.max_images} images at most"
            return f"images for the judge (before: {shown})"
        return f"other judge (before: {self.in_words()})"

    @classmethod
    def of(cls, settings: JudgeSettings, endpoint: str) -> JudgeRecord:
        """Return the record of a run's judge."""
        return cls(
            provider=settings.provider,
            endpoint=endpoint,
            model=settings.model,
            temperature=settings.temperature,
            reasoning_effort=settings.reasoning_effort,
            max_images=settings.max_images,
        )


class Served(BaseModel):
    """What a judge was reported to be by its server.

    Args:
        model: the model's own name, such as one with a date.
        system_fingerprint: the backend's version.
        judgments: how many replies came from it.
    """

    model_config = ConfigDict(frozen=True)

    model: str | None = None
    system_fingerprint: str | None = None
    judgments: int


class Provenance(BaseModel):
    """All that determines a result, and what is known of how it came about.

    Args:
        answer_sha256: of the answer's text as it was judged.
        script: version folder and file name of the eval script.
        script_sha256: of the script's bytes.
        settings_sha256: of every text of ours that judges are shown, and of the default settings.
        pages: digest of every page looked up; ``None`` where nothing was stored.
        listing_sha256: of the list of stored pages, where the script asked for it.
        with_captures: whether pages that were not stored would have been captured.
        with_private_network: whether private addresses were visited as well, by captures and by scripts'
            downloads.
        refused_pages: those that could not be captured because their addresses are private.
        refused_downloads: of the script's own, for the same reason.
        other_pages: digests of judged pages that ``pages`` does not have: out of a cache of the script's
            own, or stored anew by the script after they were looked up first.
        versions: of this package, of Python and of the libraries that shape what a judge is shown; empty in
            results of earlier versions.
        served: what the judge was reported to be.
        inputs: what the script read beside answer and pages.
        replayed_from: of a replay, the file that its judgments are from; ``None`` in results of earlier
            versions.
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
    with_private_network: bool = False
    refused_pages: tuple[str, ...] = ()
    refused_downloads: tuple[str, ...] = ()
    other_pages: Mapping[str, tuple[str | None, ...]] = Field(default_factory=dict)
    versions: Mapping[str, str] = Field(default_factory=dict)
    served: tuple[Served, ...] = ()
    inputs: ScriptInputs = ScriptInputs()
    replayed_from: JudgmentSource | None = None

    def differs_from(self, current: Provenance) -> str | None:
        """Return what has changed since, in words, or ``None`` if nothing has; pages are compared apart."""
        changes = {
            "answer changed": self.answer_sha256 != current.answer_sha256,
            "script changed": self.script_sha256 != current.script_sha256,
            "this version asks the judge differently": self.settings_sha256 != current.settings_sha256,
            self.judge.change_to(current.judge): self.judge != current.judge,
        }
        changed = [name for name, is_different in changes.items() if is_different]
        return ", ".join(changed) or None


def provenance_in(result: Mapping[str, Any]) -> Provenance | None:
    """Return what a result was made from; ``None`` where it does not say, as another tool's."""
    try:
        return Provenance.model_validate(result.get("provenance"))
    except ValidationError:
        return None


@cache
def library_versions() -> Mapping[str, str]:
    """Return the versions of this package, of Python and of what shapes the questions to judges."""
    versions = {"mind2web2": __version__, "python": platform.python_version()}
    for name in _SHAPING_LIBRARIES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions


def served_by(served: Mapping[tuple[str | None, str | None], int]) -> tuple[Served, ...]:
    """Return what judges were reported to be, the most frequent first.

    Args:
        served: how many judgments came from which model and backend.
    """
    ordered = sorted(served.items(), key=lambda item: (-item[1], str(item[0])))
    return tuple(
        Served(model=model, system_fingerprint=fingerprint, judgments=count)
        for (model, fingerprint), count in ordered
    )


@cache
def settings_sha256() -> str:
    """Return the digest of the default settings and of every text of ours that judges are shown."""
    settings = {
        "version": __version__,
        "config": vars(EvaluatorConfig()),
        "questions": list(_rendered_questions()),
        "schema": BinaryEvalResult.model_json_schema(),
        "in_words": schema_text(schema_of(BinaryEvalResult)),
        "repair": repair_messages(Completion(text="reply"), InvalidOutputError("problem")),
    }
    return text_sha256(json.dumps(settings, sort_keys=True))


def _rendered_questions() -> Iterator[Sequence[Message]]:
    """Yield questions that show every text of ours: rendered, so that none has to be listed."""
    delimiter = BlockChain().block("task", "task").opening
    answer = f"answer {delimiter} \u200b\u200b\u200b\u200b \u202e"
    page = _page_with_all_notes()
    limited = (page.within(ImageLimit(max_images=count, max_side_px=1)) for count in (0, 1))
    for shown in (None, page, page.halved(), replace(page, images=()), *limited):
        for instruction in (NO_INSTRUCTION, "instruction"):
            yield verification_messages("task", answer, shown, "claim", instruction)
            yield extraction_messages("task", answer, shown, "form", instruction)


def _page_with_all_notes() -> PreparedPage:
    settings = PageSettings(max_text_chars=5, max_pdf_text_pages=1, max_pdf_images=1)
    rendered = RenderedPdf(images=(b"",), text="", page_count=3, text_page_count=1, unreadable_pages=(2,))
    notes = (*pdf_notes(rendered, settings, True), NO_SCREENSHOT, screenshot_note(1, 2))
    image = HashedText("data:image/jpeg;base64,AA")
    content = page_content(settings, "pdf", "A page that is cut.", (image, image), notes)
    troubles = tuple(Trouble(kind=kind, detail="") for kind in get_args(TroubleKind))
    url = "https://page.example"
    record = CaptureRecord(
        requested_url=url, final_url=url, kind="pdf", status=404, captured_at="", troubles=troubles
    )
    return PreparedPage(
        url=url,
        kind=content.kind,
        sha256=None,
        text=content.text,
        text_chars=content.text_chars,
        text_chars_stored=content.text_chars_stored,
        images=content.images,
        notes=(*content.notes, *trouble_notes(record)),
    )
