"""Pages that an agent saw, stored from JSON lines, and from files that plugins read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mind2web2.capture.models import CapturedPage, CaptureRecord, PageKind, Trouble
from mind2web2.capture.pdf import looks_like_pdf
from mind2web2.capture.quality import PageObservation, signs_of_trouble
from mind2web2.errors import DocumentError, UsageError
from mind2web2.pages.cache_files import screenshot_bytes
from mind2web2.pages.cited_pages import AgentCache, TaskCitations
from mind2web2.urls.parts import clean_url, lookup_key, split_url
from mind2web2.utils.entry_points import load_part, parts_of
from mind2web2.utils.files import read_regular_file

MAX_TEXT_CHARS = 4_000_000
MAX_FILE_BYTES = 100 * 1024**2
_MAX_PATH_CHARS = 1000


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a part of a file cannot be imported."""

    place: str
    reason: str

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}"


@dataclass(frozen=True, slots=True)
class FoundPage:
    """A page of a file: text and perhaps a screenshot, or a PDF.

    Args:
        place: where in the file, such as ``line 3``.
        text: as the agent saw it.
        screenshot: JPEG.
        fetched_at: UTC, ISO 8601.
    """

    place: str
    url: str
    text: str | None = None
    screenshot: bytes | None = None
    pdf: bytes | None = None
    status: int | None = None
    fetched_at: str | None = None

    def captured(self, source: str) -> CapturedPage:
        """Return the page as if it had been captured, with its source in the record."""
        kind: PageKind = "pdf"
        troubles: tuple[Trouble, ...] = ()
        if self.pdf is None:
            kind = "web"
            text = self.text or ""
            seen = PageObservation(
                requested_url=self.url,
                final_url=self.url,
                status=self.status,
                text=text,
                text_chars=len(text),
            )
            troubles = signs_of_trouble(seen)
        record = CaptureRecord(
            requested_url=self.url,
            final_url=self.url,
            kind=kind,
            captured_at=self.fetched_at or datetime.now(UTC).isoformat(timespec="seconds"),
            imported_from=source,
            status=self.status,
            troubles=troubles,
        )
        return CapturedPage(record, text=self.text, screenshot=self.screenshot, pdf=self.pdf)


# The hook ``page_importers``, by the ending of a file's name such as ``warc``: reads the pages of a
# file. It is called twice.
Importer = Callable[[Path], Iterator[FoundPage | Fault]]


@dataclass(slots=True)
class ImportOutcome:
    """The outcome of an import; with faults, nothing was stored.

    Args:
        stored: index keys of stored pages, by task.
        kept: pages that stay as they are, since they look better than the imported ones.
        uncited: pages that no answer cites.
    """

    faults: list[Fault] = field(default_factory=list)
    stored: dict[str, list[str]] = field(default_factory=dict)
    kept: list[str] = field(default_factory=list)
    uncited: list[str] = field(default_factory=list)


def import_file(
    path: Path,
    cache: AgentCache,
    tasks: Sequence[TaskCitations],
    *,
    task_ids: Sequence[str] = (),
) -> ImportOutcome:
    """Store the pages of a file: each in the named tasks, or else in those whose answers cite it.

    All pages are read before the first is stored.

    Raises:
        UsageError: the file is of no known type.
        CacheWriteError: the cache cannot be written.
    """
    read = _reader_of(path)
    outcome = ImportOutcome(faults=_faults(read, path))
    if outcome.faults:
        return outcome
    wanted = _citing_tasks(tasks, task_ids)
    for page in read(path):
        assert isinstance(page, FoundPage), "the file has no faults"
        cited_by = wanted.get(lookup_key(page.url), {})
        places = {task_id: cited_by.get(task_id, page.url) for task_id in task_ids} or cited_by
        if not places:
            outcome.uncited.append(page.url)
        captured = page.captured(path.name)
        for task_id, url in places.items():
            if cache.of(task_id).put_capture(captured, url=url):
                outcome.stored.setdefault(task_id, []).append(url)
            else:
                outcome.kept.append(url)
    return outcome


def _citing_tasks(
    tasks: Sequence[TaskCitations], task_ids: Sequence[str]
) -> Mapping[str | None, dict[str, str]]:
    """Return which tasks cite a page, each with its spelling, by lookup key."""
    citing_tasks: dict[str | None, dict[str, str]] = {}
    for task in tasks:
        if not task_ids or task.task_id in task_ids:
            for url in task.urls():
                citing_tasks.setdefault(lookup_key(url), {})[task.task_id] = url
    return citing_tasks


def _faults(read: Importer, path: Path) -> list[Fault]:
    """Return the faults of a file, twice the same page included."""
    faults = []
    places: dict[str | None, str] = {}
    try:
        for page in read(path):
            if isinstance(page, Fault):
                faults.append(page)
            elif (first := places.setdefault(lookup_key(page.url), page.place)) != page.place:
                faults.append(Fault(page.place, f"the same page as {first}: {page.url[:200]}"))
    except OSError as error:
        faults.append(Fault("the file", f"cannot be read: {error.strerror or error}"))
    if not places and not faults:
        faults.append(Fault("the file", "it holds no page"))
    return faults


def _reader_of(path: Path) -> Importer:
    ending = path.name.lower().removesuffix(".gz").rpartition(".")[2]
    if ending in ("jsonl", "ndjson", "json"):
        return _json_pages
    importer: Importer | None = load_part("page_importers", ending)
    if importer is None:
        endings = "".join(f", .{ending}" for ending in parts_of("page_importers"))
        raise UsageError(f"{path} is not one of .jsonl{endings}")
    return importer


class _PageLine(BaseModel):
    """A line of a JSON lines file; see docs/pages.md."""

    model_config = ConfigDict(strict=True)

    url: str
    text: str | None = Field(None, max_length=MAX_TEXT_CHARS)
    pdf: str | None = None
    screenshot: str | None = None
    fetched_at: str | None = None
    status: int | None = Field(None, ge=200, le=599)


def _json_pages(path: Path) -> Iterator[FoundPage | Fault]:
    with path.open("rb") as lines:
        number = 0
        while line := lines.readline(MAX_FILE_BYTES):
            number += 1
            if line.strip():
                place = f"line {number}"
                try:
                    yield _json_page(place, _PageLine.model_validate_json(line), path.parent)
                except ValidationError as error:
                    reasons = "; ".join(map(_in_words, error.errors(include_url=False)))
                    yield Fault(place, reasons)
                except (ValueError, OSError, DocumentError) as error:
                    yield Fault(place, str(error))


def _in_words(error: Any) -> str:
    where = ".".join(map(str, error["loc"]))
    return f"{where}: {error['msg']}" if where else str(error["msg"])


def _json_page(place: str, line: _PageLine, folder: Path) -> FoundPage:
    scheme = split_url(clean_url(line.url)).scheme
    if lookup_key(line.url) is None or scheme not in ("http", "https"):
        raise ValueError(f"url is not an http or https address: {line.url[:200]!r}")
    if (line.text is None) == (line.pdf is None):
        raise ValueError("has neither text nor pdf, or both")
    pdf = None
    if line.pdf is not None:
        pdf = _file_beside(line.pdf, folder, "pdf")
        if not looks_like_pdf(pdf):
            raise ValueError(f"pdf: {line.pdf} is not a PDF")
    return FoundPage(
        place,
        line.url,
        line.text,
        _screenshot(line.screenshot, folder) if line.screenshot else None,
        pdf,
        line.status,
        _moment(line.fetched_at),
    )


def _screenshot(screenshot: str, folder: Path) -> bytes | None:
    is_name = len(screenshot) <= _MAX_PATH_CHARS and Path(screenshot).suffix
    if is_name and not screenshot.startswith("data:"):
        return screenshot_bytes(_file_beside(screenshot, folder, "screenshot"))
    return screenshot_bytes(screenshot)


def _file_beside(name: str, folder: Path, key: str) -> bytes:
    file = folder / name
    if not file.resolve().is_relative_to(folder.resolve()):
        raise ValueError(f"{key}: {file} is outside of the folder of the imported file")
    if not file.is_file():
        raise ValueError(f"{key}: there is no file {file}")
    return read_regular_file(file, MAX_FILE_BYTES)


def _moment(text: str | None) -> str | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"fetched_at is not a date such as 2025-03-14T09:30:00Z: {text[:50]!r}"
        ) from None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return moment.astimezone(UTC).isoformat(timespec="seconds")
