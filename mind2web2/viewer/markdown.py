"""The markdown of answers as a tree for the front end."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

# A node is a text, or [tag, {attribute: value}, child, ...].
Node = str | list[Any]


_LINK = re.compile(r"https?://[^\s]+", re.IGNORECASE)
# The parser would take a footnote's text for the address of a link.
_FOOTNOTE = re.compile(r"^([ \t>]*)\[(?=\^[^\]\n]+\]:)", re.MULTILINE)
# Answers have at most a megabyte; a longer text would only slow the browser down.
MAX_CHARS = 400_000


def markdown_tree(text: str) -> list[Node]:
    """Return the blocks of a markdown text.

    HTML in it is text, an image is its description with a link, and a link leads to http or https
    only.
    """
    cut = text[:MAX_CHARS]
    tree = _tree(_parser().parse(_FOOTNOTE.sub(r"\1\\[", cut)))
    if len(cut) < len(text):
        tree.append(["p", {}, f"[cut here: {MAX_CHARS} of {len(text)} characters are shown]"])
    return tree


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False, "maxNesting": 40, "linkify": True}).enable(
        ["table", "strikethrough", "linkify"]
    )


def _tree(tokens: Sequence[Token]) -> list[Node]:
    root: list[Any] = []
    stack: list[list[Any]] = [root]
    for token in tokens:
        if token.nesting == 1:
            node = [token.tag, _attributes(token)]
            stack[-1].append(node)
            stack.append(node)
        elif token.nesting == -1:
            stack.pop()
        elif token.type == "inline":
            stack[-1].extend(_tree(token.children or []))
        else:
            stack[-1].extend(_leaf(token))
    return root


def _leaf(token: Token) -> list[Node]:
    if token.type == "text":
        return [token.content]
    if token.type == "softbreak":
        return ["\n"]
    if token.type in ("fence", "code_block"):
        return [["pre", {}, token.content]]
    if token.type == "code_inline":
        return [["code", {}, token.content]]
    if token.type == "image":
        label = f"[image: {token.content or 'no description'}]"
        link = _link(token.attrGet("src"))
        return [["a", {"href": link}, label] if link else label]
    # A line break or a rule.
    return [[token.tag, {}]]


def _attributes(token: Token) -> dict[str, str]:
    if token.tag == "a":
        link = _link(token.attrGet("href"))
        return {"href": link} if link else {}
    if token.tag == "ol" and (start := token.attrGet("start")) is not None:
        return {"start": str(start)}
    return {}


def _link(address: object) -> str | None:
    if isinstance(address, str) and _LINK.fullmatch(address):
        return address
    return None
