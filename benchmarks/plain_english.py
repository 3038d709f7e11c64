"""Count the sentence forms that make readers stop, in code, tests and documents.

Run ``uv run python benchmarks/plain_english.py``; add ``-v`` for the places. Two patterns are
counted:

- comments and docstrings that begin in the middle of a sentence ("Of each page.", "Such as notes on
  a row.");
- "is no", "are no" and the like before a noun, outside quotations. "There is no page" is plain
  English.
"""

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
FIXED_TEXTS = {"fixtures", "prompts", "eval_scripts"}
# These words open a sentence only if it is a question, or if a noun follows at once ("Those pages
# are ...").
MIDDLES = re.compile(
    r"(?:Of|Whether|Such as|Unless|Whoever|Whose|To be|So (?:do|does|is|are|did)|Nor|And|Or|But)\b"
    r"|(?:What|Who|Those)\b(?!.*\?)"
)
IS_NO = re.compile(
    r"(?<!there )(?<!There )\b(?:is|are|was|were) no "
    r"(?!longer\b|more\b|one\b|less\b|matter\b)[a-z]+"
)
QUOTATION = re.compile(r"\"[^\"\n]*\"|“[^”]*”|`[^`\n]*`|\*[^*\n]+\*")


@dataclass(frozen=True)
class Place:
    """One sentence that a reader stops at."""

    pattern: str
    path: Path
    line: int
    text: str


def tracked_files(*suffixes: str) -> list[Path]:
    """Return the repository's files with these suffixes.

    Fixtures were written by others. Judges read the prompts and the example's models: a changed
    word would change the keys of stored judgments.
    """
    listing = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    paths = [ROOT / name for name in listing.splitlines() if name.endswith(suffixes)]
    return [path for path in paths if FIXED_TEXTS.isdisjoint(path.parts) and path.is_file()]


def comment_blocks(source: str) -> Iterator[tuple[int, str]]:
    """Yield the first line's number and the text of each block of comments."""
    block: list[str] = []
    first_line = last_line = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT or token.line.strip() != token.string:
            continue
        text = token.string.lstrip("#:! ")
        if block and token.start[0] == last_line + 1:
            block.append(text)
        else:
            if block:
                yield first_line, " ".join(block)
            block, first_line = [text], token.start[0]
        last_line = token.start[0]
    if block:
        yield first_line, " ".join(block)


def docstrings(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each docstring."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, kinds) and (text := ast.get_docstring(node)):
            yield node.body[0].lineno, text


def sentences(path: Path) -> Iterator[tuple[int, str]]:
    """Yield what a reader reads in one file: comments and docstrings, or a document's lines."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        yield from comment_blocks(text)
        yield from docstrings(text)
    else:
        yield from enumerate(text.splitlines(), start=1)


def places() -> Iterator[Place]:
    """Yield each place of each pattern."""
    for path in tracked_files(".py", ".md"):
        for line, text in sentences(path):
            if path.suffix == ".py" and MIDDLES.match(text):
                yield Place("begins in the middle", path, line, text)
            if IS_NO.search(QUOTATION.sub("", text)):
                yield Place("is no ...", path, line, text)


def main() -> None:
    """Print the counts by folder, and each place with ``-v``."""
    counts: Counter[tuple[str, str]] = Counter()
    for place in places():
        where = place.path.relative_to(ROOT)
        counts[place.pattern, where.parts[0]] += 1
        if "-v" in sys.argv:
            sys.stdout.write(f"{where}:{place.line}: {place.text[:110]!r}\n")
    for pattern in ("begins in the middle", "is no ..."):
        rows = {folder: n for (name, folder), n in counts.items() if name == pattern}
        folders = ", ".join(f"{folder} {n}" for folder, n in sorted(rows.items()))
        sys.stdout.write(f"{pattern}: {sum(rows.values())} ({folders})\n")


if __name__ == "__main__":
    main()
