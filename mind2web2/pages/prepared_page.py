"""A page as the judge sees it: content within the limits, and notes on the rest."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pydantic import NonNegativeInt, PositiveInt

from mind2web2.capture.models import PageKind, RenderedPdf
from mind2web2.prompts import HashedText, encodable
from mind2web2.prompts.flags import flags_of, one_a_kind
from mind2web2.rubric.verdicts import TO_THIS_JUDGE, Flag, PageShown
from mind2web2.utils.invisible_text import make_visible

NO_SCREENSHOT = "no screenshot is stored"


@dataclass(frozen=True, slots=True)
class PageSettings:
    """How much of a page the judge is shown.

    Values from a script's process are checked by the types.

    Args:
        image_max_height: pixels of a screenshot, after scaling it to ``image_max_width``; the rest
            is cut.
        part_height: a screenshot is shown in parts of this height, since models shrink taller
            images until nothing can be read; neighbours share ``part_overlap`` pixels.
    """

    max_text_chars: NonNegativeInt = 400_000
    image_max_width: PositiveInt = 1100
    image_max_height: PositiveInt = 10_000
    part_height: PositiveInt = 2000
    part_overlap: NonNegativeInt = 200
    jpeg_quality: NonNegativeInt = 85
    max_pdf_images: NonNegativeInt = 50
    max_pdf_text_pages: NonNegativeInt = 100


@dataclass(frozen=True, slots=True)
class PreparedPage:
    """A page as the judge is shown it.

    Args:
        url: empty for a content that several URLs may share.
        text: cut to the limit, with a mark where it was.
        text_chars: characters of the page's own text in ``text``.
        text_chars_stored: characters before the cut.
        images: ``data:`` URLs, from top to bottom or page by page.
        notes: parts that were left out, and signs of trouble.
        troubles: kinds of trouble in its capture.
        flags: passages of text or address that look as if they were written for the judge.
        times_halved: how often it was cut for the judge's context.
        captured_at: UTC, ISO 8601; ``None`` where the cache does not know.
        captured_by: the browser that it was captured with.
        doubt: why another machine or day might give another content.
    """

    url: str
    kind: PageKind
    sha256: str | None
    text: HashedText
    text_chars: int
    text_chars_stored: int
    images: tuple[HashedText, ...] = ()
    notes: tuple[str, ...] = ()
    troubles: tuple[str, ...] = ()
    flags: tuple[Flag, ...] = ()
    times_halved: int = 0
    captured_at: str | None = None
    captured_by: str | None = None
    doubt: str | None = None

    @property
    def memory_bytes(self) -> int:
        """Return how much memory texts and images take."""
        return sum(text.memory_bytes for text in (self.text, *self.images))

    def evidence_record(self) -> PageShown:
        """Return the record for the evidence."""
        return PageShown(
            kind=self.kind,
            sha256=self.sha256,
            text_chars=self.text_chars,
            text_chars_stored=self.text_chars_stored,
            images=len(self.images),
            notes=self.notes,
            troubles=self.troubles,
            flags=self.flags,
            captured_at=self.captured_at,
            captured_by=self.captured_by,
        )

    def without_images(self) -> PreparedPage:
        """Return the page as a judge is shown it that is shown no images."""
        return replace(self, images=(), notes=(*self.notes, f"no images are {TO_THIS_JUDGE}"))

    def as_shown(self, images: int) -> PreparedPage:
        """Return the page as a judge was shown it, with the first so many images."""
        if images >= len(self.images):
            return self
        if not images:
            return self.without_images()
        note = f"images: the first {images} of {len(self.images)} are {TO_THIS_JUDGE}"
        return replace(self, images=self.images[:images], notes=(*self.notes, note))

    def halve(self) -> PreparedPage:
        """Return the page with half its text and images, for a judge with a short context."""
        chars = self.text_chars // 2
        images = self.images[: len(self.images) // 2]
        note = f"cut for the judge's context: {chars} characters and {len(images)} images are shown"
        return replace(
            self,
            text=cut_text(self.text[: self.text_chars], chars, self.text_chars_stored),
            text_chars=chars,
            images=images,
            notes=(*self.notes, note),
            times_halved=self.times_halved + 1,
        )


def cut_text(text: str, limit_chars: int, stored_chars: int) -> HashedText:
    """Return a page's text up to the limit, with a mark where it was cut."""
    if len(text) > limit_chars:
        text = (
            f"{text[:limit_chars]}\n[The page is cut here: {limit_chars} of {stored_chars} "
            "characters.]"
        )
    # here, in a worker thread, rather than at the first request
    return HashedText(text).prepare()


def pdf_notes(rendered: RenderedPdf, settings: PageSettings, with_images: bool) -> tuple[str, ...]:
    """Return the notes on parts of a PDF that are not shown."""
    pages = rendered.page_count
    notes = []
    if pages > settings.max_pdf_text_pages:
        notes.append(
            f"PDF cut: text of the first {settings.max_pdf_text_pages} of {pages} pages is shown"
        )
    if with_images and pages > settings.max_pdf_images:
        notes.append(
            f"PDF cut: images of the first {settings.max_pdf_images} of {pages} pages are shown"
        )
    if rendered.missing_scripts:
        notes.append(
            "PDF without the font for its letters: images of pages in "
            f"{', '.join(rendered.missing_scripts)} are left out"
        )
    if with_images and rendered.images and not rendered.text:
        notes.append("PDF without text: its pages are shown as images only")
    if rendered.unreadable_pages:
        notes.append(
            f"PDF damaged: nothing of pages {', '.join(map(str, rendered.unreadable_pages))}"
        )
    return tuple(notes)


def page_content(
    settings: PageSettings,
    kind: PageKind,
    text: str,
    images: tuple[HashedText, ...],
    notes: tuple[str, ...],
    doubt: str | None = None,
    hidden: str = "",
) -> PreparedPage:
    """Return a page's text, cut to the limit, with its images and all that is noted of it."""
    limit = settings.max_text_chars
    # Hidden text of a PDF is not shown, but flagged.
    flags = one_a_kind((*flags_of(text[:limit]), *flags_of(hidden[:limit])))
    text = make_visible(encodable(text))
    if len(text) > limit:
        notes = (
            *notes,
            f"text cut: the first {limit} of {len(text)} characters are shown",
        )
    return PreparedPage(
        url="",
        kind=kind,
        sha256=None,
        text=cut_text(text, limit, len(text)),
        text_chars=min(len(text), limit),
        text_chars_stored=len(text),
        images=images,
        notes=notes,
        flags=flags,
        doubt=doubt,
    )


def screenshot_note(shown_px: int, height_px: int) -> str:
    """Return the note that the lower end of a screenshot is not shown."""
    return f"screenshot cut: {shown_px} of {height_px} pixels from the top are shown"
