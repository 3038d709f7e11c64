"""Syntax trees of sources, in any thread."""

from __future__ import annotations

import ast
import threading

# Python 3.11 counts the depth of a tree for all threads together: one that parses while another
# does raises SystemError ("AST constructor recursion depth mismatch").
_ONE_AT_A_TIME = threading.Lock()


def syntax_tree(source: str | bytes, filename: str = "<unknown>") -> ast.Module:
    """Return the syntax tree of a source, in any thread."""
    with _ONE_AT_A_TIME:
        try:
            return ast.parse(source, filename=filename)
        except SystemError:
            # Another package parses in a thread of its own, without our lock.
            return ast.parse(source, filename=filename)
