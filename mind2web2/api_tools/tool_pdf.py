"""PDFs for eval scripts, as judges see them: page images and text, from a URL, a file or bytes.

Downloads connect to public addresses, within bounds of size and time, with retries.
"""

from __future__ import annotations

import asyncio
import base64
import logging
from io import BytesIO
from pathlib import Path

from mind2web2.api_tools.arxiv_papers import id_from_pdf_link
from mind2web2.api_tools.pdf_download import MAX_DOWNLOAD_BYTES, PASSING, download, is_web_address
from mind2web2.api_tools.surroundings import surroundings
from mind2web2.capture.models import RenderedPdf
from mind2web2.capture.pdf import HEADER_BYTES, looks_like_pdf, render_pdf
from mind2web2.errors import CaptureError, DocumentError, WorkerError
from mind2web2.urls.parts import split_url
from mind2web2.utils.api_misuse import checked_call, script_api

__all__ = ["PDFParser", "RenderedPdf", "is_pdf", "render_pdf"]

log = logging.getLogger(__name__)

# Long enough for a slow server, short enough for a question that every cited URL may raise.
IS_PDF_TIMEOUT_S = 30.0

Source = str | Path | bytes | BytesIO


@script_api
class PDFParser:
    """Turns PDFs into page images and text."""

    async def extract(self, source: Source) -> tuple[list[str], str]:
        """Return one base64 JPEG a page (144 dpi, at most 50) and the text (at most 100 pages).

        A document that cannot be downloaded or read has neither, and the answer's log says why.
        """
        name = source if isinstance(source, (str, Path)) else "the given document"
        try:
            rendered = await render_pdf(await _load(source))
        except (CaptureError, DocumentError) as error:
            log.warning("document is unavailable source=%s reason=%s", name, error)
            if isinstance(error, WorkerError) or isinstance(error.__cause__, PASSING):
                surroundings().report_doubt(f"{name}: {error}")
            return [], ""
        images = [base64.b64encode(image).decode("ascii") for image in rendered.images]
        return images, rendered.text


@checked_call
async def is_pdf(url: str, logger: logging.Logger | None = None) -> bool:
    """Return whether a URL serves a PDF, by its form or its first bytes.

    A path that ends in ``.pdf`` may be a landing page, so it decides only where the server does not
    answer. The bytes decide rather than the content type, which error pages and downloads get
    wrong.

    Args:
        logger: takes the message about a kind that was guessed; the package's own logger by
            default.
    """
    url = url.strip()
    if id_from_pdf_link(url) is not None:
        return True
    if "://" not in url:
        url = f"http://{url}"
    try:
        start = await download(url, first_bytes=HEADER_BYTES, timeout_s=IS_PDF_TIMEOUT_S)
    except CaptureError as error:
        ends_in_pdf = _path_ends_in_pdf(url)
        (logger or log).info(
            "kind of page guessed from its url is_pdf=%s reason=%s", ends_in_pdf, error
        )
        return ends_in_pdf
    return looks_like_pdf(start)


def _path_ends_in_pdf(url: str) -> bool:
    return is_web_address(url) and split_url(url).path.lower().endswith(".pdf")


async def _load(source: Source) -> bytes:
    if isinstance(source, str) and source.strip().lower().startswith(("http://", "https://")):
        return await download(source.strip())
    return await asyncio.to_thread(_read, source)


def _read(source: Source) -> bytes:
    if isinstance(source, bytes):
        return source
    if isinstance(source, BytesIO):
        return source.getvalue()
    if not isinstance(source, (str, Path)):
        raise TypeError(
            f"a PDF is given as URL, path, bytes or BytesIO, not as {type(source).__name__}"
        )
    try:
        if Path(source).stat().st_size > MAX_DOWNLOAD_BYTES:
            raise DocumentError(f"{source} is larger than {MAX_DOWNLOAD_BYTES} bytes")
        return Path(source).read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise DocumentError(f"{source} cannot be read as a file ({error})") from error
