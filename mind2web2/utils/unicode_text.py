"""Text that can be written as UTF-8: Python strings may hold lone surrogates, and pages bring them."""

import ast
import threading


def is_unicode_text(text: str) -> bool:
    """Tell whether the text can be written as UTF-8, that is, holds no lone surrogate."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def as_unicode_text(text: str) -> str:
    """Return the text with lone surrogates as U+FFFD, and pairs of them as the character they mean."""
    if is_unicode_text(text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


# Python 3.11 counts the depth of a tree for all threads together: one that parses while another does raises
# SystemError ("AST constructor recursion depth mismatch").
_ONE_AT_A_TIME = threading.Lock()


def parsed(source: str | bytes, filename: str = "<unknown>") -> ast.Module:
    """Return the syntax tree of a source, in any thread."""
    with _ONE_AT_A_TIME:
        return ast.parse(source, filename=filename)
