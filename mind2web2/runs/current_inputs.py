"""What an answer would be judged with now, and what has changed since a result was made."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
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
from mind2web2.runs.provenance import Provenance
from mind2web2.scripts.inputs import InputsNow, changed_inputs
from mind2web2.utils.files import text_sha256
from mind2web2.utils.json_fields import JsonObject
from mind2web2.utils.names import name_list
from mind2web2.verification.config import EvaluatorConfig
from mind2web2.verification.messages import (
    BinaryEvalResult,
    extraction_messages,
    verification_messages,
)

EDITED = "it was changed after it was written: its content does not match its checksum"


NO_PROVENANCE = "it does not say what it was made from"


# Libraries that send requests to judges, or render and scale the pages that judges see.
_SHAPING_LIBRARIES = (
    "aiohttp",
    "anthropic",
    "patchright",
    "pillow",
    "pydantic",
    "pypdfium2",
)


@dataclass(frozen=True, slots=True)
class Present:
    """What an answer would be judged with now; only the fields that are given are compared.

    Args:
        answer_sha256: ``None`` where the answer is missing or unreadable; ``is_answer_there`` tells which.
        script: version folder and file name; ``None``, like ``script_sha256``, where no script exists.
        script_folder: where the script is; the files that it read are named from there.
        judge: the fields of ``JudgeRecord`` to compare.
        served_models: the models that the server reported last, one for each judge.
        page_sha256: returns the digest of a stored page.
        listing_sha256: returns the digest of the list of stored pages.
        inputs: clock and variables that the script would see.
    """

    answer_sha256: str | None
    script: str | None
    script_sha256: str | None
    script_folder: Path | None = None
    is_answer_there: bool = True
    judge: JsonObject = field(default_factory=dict)
    served_models: frozenset[str] = frozenset()
    page_sha256: Callable[[str], str | None] | None = None
    listing_sha256: Callable[[], str | None] | None = None
    inputs: InputsNow | None = None

    def changes_since(
        self, made_from: Provenance | None, *, is_edited: bool
    ) -> tuple[str, ...]:
        """Return what has changed since a result was made, one phrase each; reads files."""
        edited = (EDITED,) if is_edited else ()
        return (
            *edited,
            *((NO_PROVENANCE,) if made_from is None else self._changes(made_from)),
        )

    def _changes(self, made_from: Provenance) -> Iterator[str]:
        if self.answer_sha256 is None:
            yield f"answer {'unreadable' if self.is_answer_there else 'missing'}"
        elif self.answer_sha256 != made_from.answer_sha256:
            yield "answer changed"
        if self.script_sha256 is None:
            yield f"script {made_from.script} missing, and no other script judges the task"
        elif self.script_sha256 != made_from.script_sha256:
            is_same = self.script == made_from.script
            other = f"replaced by {self.script}"
            yield f"script {made_from.script} {'changed' if is_same else other}"
        if made_from.settings_sha256 != settings_sha256():
            version = made_from.package_version
            of_version = (
                f" than version {version}" if version and version != __version__ else ""
            )
            yield f"this version asks the judge differently{of_version}"
        yield from self._page_changes(made_from)
        if self.script_folder is not None and self.inputs is not None:
            yield from changed_inputs(made_from.inputs, self.script_folder, self.inputs)
        yield from self._judge_changes(made_from)

    def _page_changes(self, made_from: Provenance) -> Iterator[str]:
        changes: dict[str, list[str]] = {
            "changed": [],
            "no longer cached": [],
            "cached since": [],
        }
        if self.page_sha256 is not None:
            for url, was in made_from.pages.items():
                now = self.page_sha256(url)
                if now != was:
                    change = (
                        "no longer cached"
                        if now is None
                        else "changed"
                        if was
                        else "cached since"
                    )
                    changes[change].append(url)
        for change, urls in changes.items():
            if urls:
                yield f"page{'s' * (len(urls) > 1)} {change}: {name_list(urls)}"
        listed, listing = made_from.listing_sha256, self.listing_sha256
        if listed is not None and listing is not None and listing() != listed:
            yield "the list of cached pages changed"

    def _judge_changes(self, made_from: Provenance) -> Iterator[str]:
        was = made_from.judge.model_dump()
        changes = [
            f"{name} {_shown(was[name])}, now {_shown(value)}"
            for name, value in self.judge.items()
            if was[name] != value
        ]
        served = {
            served.model for served in made_from.served if served.model is not None
        }
        # Of two judges, one may have been asked nothing for this result.
        before, since = served - self.served_models, self.served_models - served
        if changes:
            yield f"judge changed: {', '.join(changes)}"
        elif before and since:
            yield f"judge changed: served as {name_list(before)}, since then as {name_list(since)}"


def _shown(parameter: object) -> object:
    return "not set" if parameter is None else parameter


@cache
def library_versions() -> Mapping[str, str]:
    """Return the versions of this package, of Python and of the libraries that shape requests to judges."""
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
        "repair": repair_messages(
            Completion(text="reply"), InvalidOutputError("problem")
        ),
    }
    return text_sha256(json.dumps(settings, sort_keys=True))


def _rendered_questions() -> Iterator[Sequence[Message]]:
    """Yield rendered questions that together contain all our texts, so that no list of them is needed."""
    delimiter = BlockChain().block("task", "task").opening
    answer = f"answer {delimiter} \u200b\u200b\u200b\u200b \u202e"
    page = _page_with_all_notes()
    limited = (
        page.within(ImageLimit(max_images=count, max_side_px=1)) for count in (0, 1)
    )
    for shown in (None, page, page.halved(), replace(page, images=()), *limited):
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
    content = page_content(
        settings, "pdf", "A page that is cut.", (image, image), notes
    )
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
