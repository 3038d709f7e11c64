"""The settings of an evaluation that a script may give."""

from __future__ import annotations

from dataclasses import dataclass, fields

from mind2web2.pages.prepared_page import PageSettings
from mind2web2.prompts import NO_INSTRUCTION
from mind2web2.rubric.vote_rule import DEFAULT_TRIALS
from mind2web2.utils.api_misuse import script_api


@script_api
@dataclass
class EvaluatorConfig:
    """Settings of an evaluation; the published ones, and how screenshots and PDFs are shown.

    Args:
        max_text_chars: characters of a page's text shown to the judge; the rest is cut, visibly.
        image_max_width: pixels; wider screenshots are scaled down.
        image_max_height: pixels of a screenshot that are shown.
        jpeg_quality: of the screenshot's parts and of PDF pages.
        default_num_trials: of a majority vote, odd.
        default_majority_vote: ``False`` lets a single request decide.
        default_use_screenshot: ``False`` shows the judge text alone.
        default_additional_instruction: where a script gives none.
        part_height: pixels of one part of a screenshot.
        part_overlap: pixels that neighbouring parts share.
        max_pdf_images: PDF pages shown as images.
        max_pdf_text_pages: PDF pages whose text is shown.
    """

    max_text_chars: int = 400_000
    image_max_width: int = 1100
    image_max_height: int = 10_000
    jpeg_quality: int = 85
    default_num_trials: int = DEFAULT_TRIALS
    default_majority_vote: bool = True
    default_use_screenshot: bool = True
    default_additional_instruction: str = NO_INSTRUCTION
    part_height: int = 2000
    part_overlap: int = 200
    max_pdf_images: int = 50
    max_pdf_text_pages: int = 100

    def page_settings(self) -> PageSettings:
        """Return the part on how pages are prepared."""
        names = [field.name for field in fields(PageSettings)]
        return PageSettings(**{name: getattr(self, name) for name in names})
