"""The digest of our texts for judges, and versions of libraries that shape requests."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import get_args

from mind2web2 import __version__
from mind2web2.capture.models import (
    CaptureRecord,
    RenderedPdf,
    Trouble,
    TroubleKind,
    notes_for_judge,
)
from mind2web2.llm_client.chat import ImageLimit, Message
from mind2web2.llm_client.structured_output import (
    InvalidOutputError,
    repair_messages,
    schema_of,
    schema_text,
)
from mind2web2.llm_client.transport import Completion
from mind2web2.pages.prepared_page import (
    NO_SCREENSHOT,
    PageSettings,
    PreparedPage,
    page_content,
    pdf_notes,
    screenshot_note,
)
from mind2web2.prompts import NO_INSTRUCTION, BlockChain, HashedText
from mind2web2.utils.files import text_sha256
from mind2web2.verification.config import EvaluatorConfig
from mind2web2.verification.messages import (
    BinaryEvalResult,
    extraction_messages,
    verification_messages,
)

# Libraries that send requests to judges, or render and scale the pages that judges see.
_SHAPING_LIBRARIES = (
    "aiohttp",
    "patchright",
    "pillow",
    "pydantic",
    "pypdfium2",
)


@cache
def library_versions() -> Mapping[str, str]:
    """Return the versions of this package, Python, and libraries that shape requests."""
    versions = {"mind2web2": __version__, "python": platform.python_version()}
    for name in _SHAPING_LIBRARIES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions


@cache
def settings_sha256() -> str:
    """Return the digest of the default settings and of all our texts that judges see."""
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
    """Yield rendered questions that together contain all our texts."""
    delimiter = BlockChain().block("task", "task").opening
    answer = f"answer {delimiter} \u200b\u200b\u200b\u200b \u202e"
    page = _page_with_all_notes()
    limited = (page.within(ImageLimit(max_images=count, max_side_px=1)) for count in (0, 1))
    for shown in (None, page, page.halve(), replace(page, images=()), *limited):
        for instruction in (NO_INSTRUCTION, "instruction"):
            yield verification_messages("task", answer, shown, "claim", instruction)
            yield extraction_messages("task", answer, shown, "form", instruction)


def _page_with_all_notes() -> PreparedPage:
    settings = PageSettings(max_text_chars=5, max_pdf_text_pages=1, max_pdf_images=1)
    rendered = RenderedPdf(
        images=(b"",), text="", page_count=3, text_page_count=1, unreadable_pages=(2,)
    )
    notes = (*pdf_notes(rendered, settings, True), NO_SCREENSHOT, screenshot_note(1, 2))
    image = HashedText("data:image/jpeg;base64,AA")
    content = page_content(settings, "pdf", "A page that is cut.", (image, image), notes)
    troubles = tuple(Trouble(kind=kind, detail="") for kind in get_args(TroubleKind))
    url = "https://page.example"
    record = CaptureRecord(
        requested_url=url,
        final_url=url,
        kind="pdf",
        status=404,
        captured_at="",
        troubles=troubles,
    )
    return replace(content, url=url, notes=(*content.notes, *notes_for_judge(record)))
