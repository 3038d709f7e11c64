"""Tools that eval scripts may use: maps, arXiv, PDFs. Each is loaded when it is first asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind2web2.utils import late_names

if TYPE_CHECKING:
    from mind2web2.api_tools.tool_arxiv import ArxivTool
    from mind2web2.api_tools.tool_googlemap import GoogleMapsTool
    from mind2web2.api_tools.tool_pdf import PDFParser, is_pdf

__all__ = ["ArxivTool", "GoogleMapsTool", "PDFParser", "is_pdf"]

_HOMES = {
    "ArxivTool": "mind2web2.api_tools.tool_arxiv",
    "GoogleMapsTool": "mind2web2.api_tools.tool_googlemap",
    "PDFParser": "mind2web2.api_tools.tool_pdf",
    "is_pdf": "mind2web2.api_tools.tool_pdf",
}

__getattr__ = late_names(__name__, _HOMES)
