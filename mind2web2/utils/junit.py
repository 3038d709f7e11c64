"""JUnit XML, which continuous integration shows as test cases."""

from __future__ import annotations

import re
from typing import Literal
from xml.etree import ElementTree

# Characters that XML does not have; answers and pages may hold them.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class JUnitReport:
    """Test cases, in a suite for each subject."""

    def __init__(self) -> None:
        self._root = ElementTree.Element("testsuites")
        self._suites: dict[str, ElementTree.Element] = {}

    def add(
        self,
        suite: str,
        name: str,
        trouble: str | None = None,
        details: str = "",
        kind: Literal["failure", "error"] = "failure",
    ) -> None:
        """Add a test case to a suite, whose name the case has as that of its class.

        Args:
            trouble: why it did not pass, in one line; ``None`` if it passed.
            details: of the trouble, below that line.
            kind: an error says that nothing was tested.
        """
        subject = _text(suite)
        if subject not in self._suites:
            none = dict.fromkeys(("tests", "failures", "errors"), "0")
            self._suites[subject] = ElementTree.SubElement(
                self._root, "testsuite", none, name=subject
            )
        written = self._suites[subject]
        _count(written, "tests")
        case = ElementTree.SubElement(written, "testcase", classname=subject, name=_text(name))
        if trouble is not None:
            _count(written, f"{kind}s")
            element = ElementTree.SubElement(case, kind, message=_text(trouble))
            element.text = _text(details) or None

    def content(self) -> bytes:
        """Return the content of a file."""
        ElementTree.indent(self._root)
        xml: bytes = ElementTree.tostring(self._root, encoding="utf-8", xml_declaration=True)
        return xml + b"\n"


def _count(suite: ElementTree.Element, what: str) -> None:
    suite.set(what, str(int(suite.get(what, "0")) + 1))


def _text(value: str) -> str:
    return _NOT_XML.sub("\ufffd", value)
