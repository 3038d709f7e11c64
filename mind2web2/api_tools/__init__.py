"""Tools that eval scripts may use: maps, arXiv, PDFs. Each is loaded when it is first asked for."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mind2web2.api_tools.tool_arxiv import ArxivTool
    from mind2web2.api_tools.tool_googlemap import GoogleMapsTool
    from mind2web2.api_tools.tool_pdf import PDFParser, is_pdf

__all__ = ["ArxivTool", "GoogleMapsTool", "PDFParser", "is_pdf"]

_MODULES = {
    "ArxivTool": "tool_arxiv",
    "GoogleMapsTool": "tool_googlemap",
    "PDFParser": "tool_pdf",
    "is_pdf": "tool_pdf",
}


def __getattr__(name: str) -> Any:  # Any: it stands for every exported name
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
