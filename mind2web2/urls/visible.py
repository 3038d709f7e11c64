"""A markdown text without what its readers do not see; places stay the same."""

from __future__ import annotations

import re

_FRONT_MATTER = re.compile(
    r"\A\ufeff?---[ \t]*\n(?:[\w-]+:.*\n|[ \t]+.*\n|- .*\n|\n)*?(?:---|\.\.\.)[ \t]*(?=\n|\Z)"
)
_CODE = r"(?P<code>^(?P<fence>`{3,}+|~{3,}+).*?(?P=fence)|(?<!`)(?P<ticks>`++).*?(?P=ticks))"
CODE = re.compile(_CODE, re.MULTILINE | re.DOTALL)
# Code is seen as it is; after it come comments, hidden elements, and tags without meaning. One
# without an end is passed over at the next one, so that the time grows with the text's length.
_HIDING = r"[^<>]*\b(?:display:\s*none|visibility:\s*hidden|hidden)\b"
_CODE_OR_UNSEEN = re.compile(
    rf"{_CODE}"
    r"|<!--(?:(?!<!--).)*?-->"
    rf"|<(?P<hidden>span|div|p)\b{_HIDING}[^<>]*>"
    rf"(?:(?!<(?P=hidden)\b{_HIDING}).)*?</(?P=hidden)[^<>]*>"
    r"|</?(?:details|summary|div|span|section|article|center|font|p|br|u|small|aside)\b[^<>\n]*>",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)


def visible(text: str) -> str:
    """Return a text of the same length without front matter, comments and hidden parts."""
    return _CODE_OR_UNSEEN.sub(_seen, _FRONT_MATTER.sub(_seen, text))


def _seen(match: re.Match[str]) -> str:
    is_code = match.groupdict().get("code") is not None
    return match[0] if is_code else re.sub(r"[^\n]", " ", match[0])
