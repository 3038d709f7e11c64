"""JUnit XML, which continuous integration shows as test cases."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from xml.etree import ElementTree

# Characters that XML does not have; answers and pages may hold them.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class JUnitCase:
    """A test case.

    Args:
        trouble: why it did not pass, in one line; ``None`` if it passed.
        details: of the trouble, below that line.
        kind: an error says that nothing was tested.
    """

    classname: str
    name: str
    trouble: str | None = None
    details: str = ""
    kind: Literal["failure", "error"] = "failure"


@dataclass(frozen=True)
class JUnitSuite:
    """Test cases of one subject."""

    name: str
    cases: Sequence[JUnitCase]


def junit_xml(suites: Sequence[JUnitSuite]) -> bytes:
    """Return the content of a file."""
    root = ElementTree.Element("testsuites")
    root.extend(map(_suite, suites))
    ElementTree.indent(root)
    content: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return content + b"\n"


def _suite(suite: JUnitSuite) -> ElementTree.Element:
    troubles = [case.kind for case in suite.cases if case.trouble is not None]
    counts = {
        "tests": str(len(suite.cases)),
        "failures": str(troubles.count("failure")),
        "errors": str(troubles.count("error")),
    }
    written = ElementTree.Element("testsuite", counts, name=_text(suite.name))
    written.extend(map(_case, suite.cases))
    return written


def _case(case: JUnitCase) -> ElementTree.Element:
    written = ElementTree.Element(
        "testcase", classname=_text(case.classname), name=_text(case.name)
    )
    if case.trouble is not None:
        trouble = ElementTree.SubElement(written, case.kind, message=_text(case.trouble))
        trouble.text = _text(case.details) or None
    return written


def _text(value: str) -> str:
    return _NOT_XML.sub("\ufffd", value)
