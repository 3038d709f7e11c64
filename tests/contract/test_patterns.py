"""Regular expressions mean the same on every supported Python."""

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from re import _constants, _parser  # type: ignore[attr-defined]  # without types

import pytest

ROOT = Path(__file__).parents[2]
MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in sorted(ROOT.glob("mind2web2*/**/*.py"))
    if re.search(r"[*+?}]\+", path.read_text(encoding="utf-8"))
]
# One character each, so that nothing is read twice.
SINGLE = {_constants.IN, _constants.LITERAL, _constants.NOT_LITERAL, _constants.ANY}


def possessive_groups(part: object) -> Iterator[object]:
    """Return the parts of a pattern that repeat a group possessively."""
    if isinstance(part, _parser.SubPattern | list | tuple):
        if isinstance(part, tuple) and part[0] is _constants.POSSESSIVE_REPEAT:
            repeated = part[1][2]
            if len(repeated) != 1 or repeated[0][0] not in SINGLE:
                yield part
        for inner in part:
            yield from possessive_groups(inner)


@pytest.mark.parametrize("name", MODULES)
def test_no_group_is_repeated_possessively(name):
    """Python up to 3.11.4 has a bug with possessive repeats of groups."""
    module = importlib.import_module(name)
    patterns = [each for each in vars(module).values() if isinstance(each, re.Pattern)]
    assert not [
        each.pattern
        for each in patterns
        if list(
            possessive_groups(
                _parser.parse(
                    each.pattern,
                    each.flags & ~re.UNICODE if isinstance(each.pattern, bytes) else each.flags,
                )
            )
        )
    ]
