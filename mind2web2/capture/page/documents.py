"""Documents that are not HTML: recognised by their content, and read as text or image."""

from __future__ import annotations

import asyncio
import codecs
import re
from dataclasses import dataclass
from email.message import Message
from functools import partial
from typing import Literal
from urllib.parse import unquote

from mind2web2.capture.letters import no_font_for
from mind2web2.capture.models import Trouble
from mind2web2.capture.office import OfficeHtml, office_html
from mind2web2.capture.page_failure import PageFailureError
from mind2web2.capture.pdf import letters_of, looks_like_pdf
from mind2web2.errors import DocumentError, MachineError, WorkerError
from mind2web2.utils.images import to_jpeg
from mind2web2.utils.text import as_unicode_text
from mind2web2.utils.workers import run_in_worker

DocumentKind = Literal["html", "pdf", "image", "text", "office"]

_IMAGE_MARKS = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"BM")
_ZIP_MARK = b"PK\x03\x04"
# Names of parts, which stand uncompressed in a ZIP file; the last one is an e-book's.
_OFFICE_PARTS = (
    b"word/document.xml",
    b"xl/workbook.xml",
    b"ppt/presentation.xml",
    b"META-INF/container.xml",
)
_HTML_TYPES = (
    "text/html",
    "application/xhtml+xml",
    "image/svg+xml",
    "multipart/related",
)
_TEXT_TYPES = re.compile(
    r"text/.+|application/(?:.+\+)?(?:json|xml|yaml|x-yaml|csv|javascript|ecmascript|toml|sql|x-tex|rtf"
    r"|x-ndjson|jsonlines|geo\+json|x-sh|x-subrip)(?:-seq)?"
)
_UNTYPED = (
    "",
    "application/octet-stream",
    "binary/octet-stream",
    "application/x-download",
    "unknown/unknown",
)
_HTML_START = re.compile(
    rb"\s*+(?:<!--(?>.*?-->)\s*+)*<(?:!doctype\s+html|html|head|body)\b",
    re.IGNORECASE | re.DOTALL,
)
_TAG_START = re.compile(rb"\s*<[a-z!]", re.IGNORECASE)
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Text has only these bytes beside printable ones.
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_SNIFFED_BYTES = 4096
# Longer ones say nothing, and reading them takes time that grows with the square.
_MAX_HEADER_CHARS = 1000
# Python takes these for encodings of text; some need time that grows with the square.
_NO_CHARSETS = frozenset(
    {
        "idna",
        "mbcs",
        "oem",
        "punycode",
        "raw-unicode-escape",
        "undefined",
        "unicode-escape",
    }
)
# The share of bytes that a text may have in common with a binary file, such as a stray form feed.
_MAX_CONTROL_SHARE = 0.002


@dataclass(frozen=True, slots=True)
class FetchedDocument:
    """A response body as the browser received it, decoded from its transfer coding.

    Args:
        content_type: the header's value, parameters included; empty where the server sent none.
        file_name: as the server suggests it for saving.
        is_cut: the body was longer than the limit.
        error: why it cannot be shown as HTML, where it should be.
    """

    url: str
    content_type: str
    body: bytes
    file_name: str = ""
    is_cut: bool = False
    error: DocumentError | MachineError | None = None

    def office_text(self) -> str:
        """Return an office document as HTML. Raises DocumentError: it cannot be read."""
        return office_html(self.body, self.url).html

    @property
    def media_type(self) -> str:
        """Return the content type without its parameters, in lower case."""
        return media_type_of(self.content_type)

    def kind(self) -> DocumentKind | None:
        """Return the kind of the document, ``None`` for a kind that no judge can be shown.

        The content decides where it is unmistakable, the declared type where it is not.
        """
        head = self.body[:_SNIFFED_BYTES]
        if looks_like_pdf(head) and not _HTML_START.match(head):
            return "pdf"
        if head.startswith(_IMAGE_MARKS) or (head[:4] == b"RIFF" and head[8:12] == b"WEBP"):
            return "image"
        if head.startswith(_ZIP_MARK) and any(part in self.body for part in _OFFICE_PARTS):
            return "office"
        if self.media_type in _HTML_TYPES or self._is_html_by_content(head):
            return "html"
        if (
            _TEXT_TYPES.fullmatch(self.media_type)
            or self.media_type in _UNTYPED
            or _has_text_name(self.file_name)
        ):
            return "text" if _looks_like_text(head) else None
        return None

    def _is_html_by_content(self, head: bytes) -> bool:
        # Browsers show a document that is declared as plain text as its source.
        if self.media_type.startswith("text/"):
            return False
        return bool(_HTML_START.match(head) or (not self.media_type and _TAG_START.match(head)))

    def text(self) -> str:
        """Return the body as text, by byte order mark, declared charset or best fit."""
        for bom, marked in _BOMS:
            if self.body.startswith(bom):
                return self.body.decode(marked, errors="replace")
        for encoding in (charset_of(self.content_type) or "utf-8", "utf-8"):
            try:
                if codecs.lookup(encoding).name not in _NO_CHARSETS:
                    return self.body.decode(encoding)
            except (
                LookupError,
                ValueError,
            ):  # ValueError: it does not fit, or has a NUL in its name
                continue
        return self._guessed_text()

    def _guessed_text(self) -> str:
        from charset_normalizer import from_bytes  # slow to load, and seldom needed

        guess = from_bytes(self.body[: 1024 * 1024]).best()
        return self.body.decode(guess.encoding if guess else "latin-1", errors="replace")


def media_type_of(content_type: str) -> str:
    """Return a Content-Type header's value without its parameters, in lower case."""
    return content_type.partition(";")[0].strip().lower()


def charset_of(content_type: str) -> str | None:
    """Return the charset that a Content-Type header names."""
    charset = _header("Content-Type", content_type).get_param("charset")
    if isinstance(charset, str):
        return charset.strip().lower() or None
    return None


def _header(name: str, value: str) -> Message:
    header = Message()
    header[name] = as_unicode_text(value[:_MAX_HEADER_CHARS])
    return header


def is_rendered_type(content_type: str) -> bool:
    """Tell whether a browser shows a response of this type as a page of its own making."""
    return media_type_of(content_type) in _HTML_TYPES


def file_name_of(content_disposition: str) -> str:
    """Return the file name that a Content-Disposition header suggests, empty for none."""
    try:
        return _header("Content-Disposition", content_disposition).get_filename() or ""
    except (LookupError, ValueError):  # it names an encoding that there is not
        return ""


def is_attachment(content_disposition: str) -> bool:
    """Tell whether a server wants the content saved rather than shown."""
    disposition = content_disposition.partition(";")[0].strip().lower()
    return bool(disposition) and disposition != "inline"


def _has_text_name(file_name: str) -> bool:
    return bool(
        re.search(
            r"\.(?:txt|csv|tsv|json|jsonl|xml|md|rst|yaml|yml|log|ini|tex|bib|srt|vtt)$",
            file_name.lower(),
        )
    )


def _looks_like_text(head: bytes) -> bool:
    if any(head.startswith(bom) for bom, _ in _BOMS):
        return True
    return len(_CONTROL.findall(head)) <= _MAX_CONTROL_SHARE * len(head)


_IMAGE_TIMEOUT_S = 30.0
_PDF_TIMEOUT_S = 20.0
# Within the time that a page may take to load.
_OFFICE_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True)
class FileContent:
    """The stored form of a file: a PDF, or text with an image."""

    text: str | None = None
    image: bytes | None = None
    pdf: bytes | None = None
    notes: tuple[str, ...] = ()
    troubles: tuple[Trouble, ...] = ()


async def read_file_content(
    file: FetchedDocument, max_text_chars: int, jpeg_quality: int
) -> FileContent:
    """Return the content of a file that a judge can be shown.

    Raises:
        PageFailureError: nothing, because of its type, its size or its damage.
        MachineError: nothing, because a library is missing on this machine.
    """
    kind = file.kind()
    if not file.body:
        raise PageFailureError("the server sent an empty file", "empty_page")
    if kind == "text":
        text = await asyncio.to_thread(file.text)
        cut = file.is_cut or len(text) > max_text_chars
        notes = (f"text cut after {min(len(text), max_text_chars)} characters",) if cut else ()
        return FileContent(text=text[:max_text_chars], notes=notes)
    if isinstance(file.error, MachineError):
        raise file.error
    if file.error is not None:
        reason = f"the document cannot be read: {file.error}"
        is_transient = isinstance(file.error, WorkerError)
        raise PageFailureError(reason, "unsupported_type", is_transient=is_transient)
    if file.is_cut:
        raise PageFailureError(
            f"the file is larger than {len(file.body)} bytes", "unsupported_type"
        )
    if kind == "pdf":
        return await _pdf_content(file.body)
    if kind == "image":
        return await _image(file, jpeg_quality)
    raise PageFailureError(
        f"files of type {file.media_type or 'unknown'} are not supported",
        "unsupported_type",
    )


async def _pdf_content(pdf: bytes) -> FileContent:
    try:
        letters = await run_in_worker(letters_of, pdf, timeout_s=_PDF_TIMEOUT_S)
    except DocumentError:  # reported when the PDF is prepared for a judge
        return FileContent(pdf=pdf)
    notes = () if letters.has_text else ("no text: the pages of the PDF are images",)
    troubles = []
    if letters.missing:
        detail = f"fonts are not embedded, and {no_font_for(letters.missing)}"
        troubles.append(Trouble(kind="missing_letters", detail=detail))
    if letters.is_garbled:
        detail = "the fonts of the PDF do not say which letters they draw: its text is left out"
        troubles.append(Trouble(kind="incomplete", detail=detail))
    if letters.is_placeholder:
        detail = "a form that only Adobe's reader shows"
        troubles.append(Trouble(kind="empty_page", detail=detail))
    return FileContent(pdf=pdf, notes=notes, troubles=tuple(troubles))


async def office_as_html(file: FetchedDocument) -> OfficeHtml:
    """Return an office document or e-book as HTML. Raises DocumentError: it cannot be read."""
    name = file.file_name or unquote(file.url.partition("?")[0].rpartition("/")[2])
    return await run_in_worker(office_html, file.body, name, timeout_s=_OFFICE_TIMEOUT_S)


async def _image(file: FetchedDocument, jpeg_quality: int) -> FileContent:
    try:
        # In a process of its own: decoding takes memory as the image pleases.
        jpeg = await run_in_worker(
            partial(to_jpeg, quality=jpeg_quality),
            file.body,
            timeout_s=_IMAGE_TIMEOUT_S,
        )
    except DocumentError as error:
        raise PageFailureError(f"the image cannot be read: {error}", "unsupported_type") from error
    name = file.url.partition("?")[0].rpartition("/")[2]
    return FileContent(text=f"[image: {file.file_name or name}]", image=jpeg)
