"""Names that scripts import from the tools; importing them costs little."""

import subprocess
import sys

import pytest

from mind2web2 import api_tools
from mind2web2.api_tools import tool_arxiv, tool_googlemap, tool_pdf
from mind2web2.errors import ToolError

HEAVY = {"PIL", "arxiv", "googlemaps", "httpx2", "openai", "pypdfium2", "requests"}


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("ArxivTool", tool_arxiv),
        ("GoogleMapsTool", tool_googlemap),
        ("PDFParser", tool_pdf),
        ("is_pdf", tool_pdf),
    ],
)
def test_published_names_are_in_both_places(name, module):
    """A tool can be imported from the package and from its module."""
    assert getattr(api_tools, name) is getattr(module, name)


def test_unknown_names_are_refused():
    """A misspelt tool fails at its import."""
    with pytest.raises(ImportError, match="YahooMapsTool"):
        from mind2web2.api_tools import YahooMapsTool  # noqa: F401


def test_importing_and_building_tools_loads_nothing_heavy():
    """The libraries behind the tools wait for the first call."""
    program = """
import sys
from mind2web2.api_tools import ArxivTool, GoogleMapsTool, PDFParser, is_pdf
ArxivTool(), GoogleMapsTool(), PDFParser()
print(*sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert HEAVY.isdisjoint(done.stdout.split())


@pytest.mark.parametrize(
    ("package", "ask", "extra"),
    [
        ("arxiv", lambda: tool_arxiv.ArxivTool().search_arxiv_by_id("2401.00001"), "arxiv"),
        (
            "googlemaps",
            lambda: tool_googlemap.GoogleMapsTool().get_city_name("Main Street 1"),
            "maps",
        ),
    ],
)
async def test_a_tool_without_its_package_names_the_extra(monkeypatch, package, ask, extra):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ToolError, match=rf"package {package}: .*mind2web2\[{extra}\]"):
        await ask()
