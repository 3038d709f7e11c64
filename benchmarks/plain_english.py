"""Count the sentence forms that make readers stop, in code, tests and documents.

Run ``uv run python benchmarks/plain_english.py``; add ``-v`` for the places. Six patterns are
counted:

- sentences of comments, docstrings and documents that begin in the middle ("Of each page.", "Such
  as notes on a row.");
- comments and docstrings that are only the second half of a sentence ("Loaded when first used.",
  "Also of failed runs.");
- "is no", "are no" and the like before a noun, outside quotations. "There is no page" is plain
  English;
- functions that are named by a participle (``shown``), where a verb says what they do (``show``);
- constants whose names begin with ``MOST`` in place of ``MAX``;
- names of tests that have more than 70 characters.
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
# Others wrote the fixtures. Judges read the prompts, the example's models and its answers: a
# changed word would change the keys of stored judgments.
FIXED_TEXTS = {"fixtures", "prompts", "eval_scripts", "answers", "rehearsals"}
# These docstrings are part of a schema that judges are asked for: a changed word would change keys.
SCHEMA_TEXTS = {
    "mind2web2/plugins/check/claims.py": (
        "What a model makes of one statement.",
        "What a model makes of the statements of a chunk.",
    ),
    "tests/judge/test_judgment_key.py": ("What is asked for.",),
}
MAX_TEST_NAME_CHARS = 70

MIDDLE = "begins in the middle"
HALF = "half a sentence"
IS_NO = "is no ..."
PARTICIPLE = "function named by a participle"
MOST = "constant named MOST_"
LONG_NAME = "long name of a test"
PATTERNS = (MIDDLE, HALF, IS_NO, PARTICIPLE, MOST, LONG_NAME)

# These words open a sentence only if it is a question.
_MIDDLES = re.compile(
    r"(?:Of|Whether|Such as|Unless|Whoever|Whose|Nor|So (?:do|does|is|are|did))\b"
    r"|(?:What|Who|Those)\b(?!.*\?)"
)
_PREPOSITIONS = "as|at|by|for|from|if|in|of|on|once|only|so|to|when|where|with|without"
_HALVES = re.compile(
    r"(?:And|Or|But|Also|Likewise|Not(?! all| every| only| each| even))\b"
    rf"|[A-Z][a-z]+ed(?: (?:{_PREPOSITIONS})\b|[.,:;])"
)
_IS_NO = re.compile(
    r"(?<!there )(?<!There )\b(?:is|are|was|were) no "
    r"(?!longer\b|more\b|one\b|less\b|better\b)[A-Za-z]+"
)
_QUOTATION = re.compile(r"\"[^\"\n]*\"|“[^”]*”|`[^`\n]*`|\*[^*\n]+\*")
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')*_]*\s+(?=[A-Z])")
_PARAGRAPH_END = re.compile(r"\n\s*\n|\n\s*(?:Args|Raises|Yields|Returns):\n|\n\s+\w+: ")
_LIST_ITEM = re.compile(r"(?:[-*]|\d+\.)\s+")
_NOT_PROSE = ("#", "|", "<!--", "![", ">", ":::")

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# Participles that do not end with "ed", and words that do and are none.
_IRREGULAR = re.compile(
    r"begun|bought|broken|brought|built|caught|chosen|done|drawn|driven|fallen|felt|found|given|gone"
    r"|heard|held|kept|known|laid|led|left|lost|made|meant|met|paid|said|seen|sent|shown|sold|stood"
    r"|stuck|taken|thrown|told|understood|woken|won|written"
)
_NO_PARTICIPLES = frozenset({"embed", "feed", "need", "seed", "speed"})
# These are published, or the name of a stored field.
_KEPT_NAMES: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Place:
    """One place that a reader stops at."""

    pattern: str
    path: Path
    line: int
    text: str


def tracked_files(*suffixes: str) -> list[Path]:
    """Return the repository's files with these suffixes, apart from fixed texts."""
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
    kinds = (ast.Module, ast.ClassDef, *_FUNCTIONS)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, kinds) and (text := ast.get_docstring(node)):
            yield node.body[0].lineno, text


def paragraphs(markdown: str) -> Iterator[tuple[int, str]]:
    """Yield the first line's number and the text of each paragraph and list item."""
    lines: list[str] = []
    first_line = 0
    is_code = False
    for number, line in enumerate([*markdown.splitlines(), ""], start=1):
        text = line.strip()
        is_fence = text.startswith("```")
        is_code ^= is_fence
        is_prose = bool(text) and not is_code and not is_fence and not text.startswith(_NOT_PROSE)
        if lines and (not is_prose or _LIST_ITEM.match(text)):
            yield first_line, " ".join(lines)
            lines = []
        if is_prose:
            first_line = first_line if lines else number
            lines.append(_LIST_ITEM.sub("", text, count=1))


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield what a reader reads in one file: comments and docstrings, or paragraphs."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        yield from comment_blocks(source)
        yield from docstrings(source)
    else:
        yield from paragraphs(source)


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text; each argument of a docstring has sentences of its own."""
    for paragraph in _PARAGRAPH_END.split(text):
        yield from _SENTENCE_END.split(" ".join(paragraph.split()))


def text_places(path: Path) -> Iterator[Place]:
    """Yield each place of the patterns of texts in one file."""
    fixed_texts = SCHEMA_TEXTS.get(path.relative_to(ROOT).as_posix(), ())
    for line, text in texts(path):
        if text in fixed_texts:
            continue
        for sentence in sentences(text):
            if _MIDDLES.match(sentence):
                yield Place(MIDDLE, path, line, sentence)
        if path.suffix == ".py" and _HALVES.match(text):
            yield Place(HALF, path, line, text)
        if path.suffix == ".py" and _IS_NO.search(_QUOTATION.sub("", text)):
            yield Place(IS_NO, path, line, text)
    if path.suffix == ".md":
        for line, text in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            if _IS_NO.search(_QUOTATION.sub("", text)):
                yield Place(IS_NO, path, line, text)


def is_participle(name: str) -> bool:
    """Tell whether a function's name begins with a participle."""
    first = name.strip("_").partition("_")[0]
    return bool(_IRREGULAR.fullmatch(first)) or (
        first.endswith("ed") and first not in _NO_PARTICIPLES
    )


def name_places(path: Path) -> Iterator[Place]:
    """Yield each place of the patterns of names in one module."""
    is_package = path.is_relative_to(ROOT / "mind2web2")
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, _FUNCTIONS):
            if node.name.startswith("test_") and len(node.name) > MAX_TEST_NAME_CHARS:
                yield Place(LONG_NAME, path, node.lineno, node.name)
            is_value = any("property" in ast.unparse(item) for item in node.decorator_list)
            is_named_so = is_participle(node.name) and node.name not in _KEPT_NAMES
            if is_package and is_named_so and not is_value:
                yield Place(PARTICIPLE, path, node.lineno, node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for name in map(ast.unparse, targets):
                if name.lstrip("_").startswith("MOST_"):
                    yield Place(MOST, path, node.lineno, name)


def places() -> Iterator[Place]:
    """Yield each place of each pattern."""
    for path in tracked_files(".py", ".md"):
        yield from text_places(path)
        if path.suffix == ".py":
            yield from name_places(path)


def main() -> None:
    """Print the counts by folder, and each place with ``-v``."""
    counts: Counter[tuple[str, str]] = Counter()
    for place in places():
        where = place.path.relative_to(ROOT)
        counts[place.pattern, where.parts[0]] += 1
        if "-v" in sys.argv:
            text = f"{place.pattern}: {place.text[:110]!r}"
            sys.stdout.write(f"{where}:{place.line}: {text}\n")
    for pattern in PATTERNS:
        rows = {folder: n for (name, folder), n in counts.items() if name == pattern}
        folders = ", ".join(f"{folder} {n}" for folder, n in sorted(rows.items()))
        sys.stdout.write(f"{pattern}: {sum(rows.values())}" + (f" ({folders})\n" if rows else "\n"))


if __name__ == "__main__":
    main()
