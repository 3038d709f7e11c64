"""Code blocks of README and docs, in a reader's order."""

import re
from dataclasses import dataclass
from pathlib import Path

from projects import REPOSITORY

DOCUMENTS = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
_BLOCK = re.compile(
    r"^(?: *<!-- not run: (?P<reason>[^\n]+?) -->\n\s*)?"
    r"^(?P<indent> *)```(?P<language>\w+)\n(?P<text>.*?)^ *```$",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Block:
    """A fenced block; ``reason``: why a test cannot run it.

    ``output``: the block of text that follows it.
    """

    language: str
    text: str
    reason: str | None
    output: str | None = None


def blocks_of(document: Path) -> list[Block]:
    """Return a document's blocks, each with the text block that follows it."""
    text = document.read_text(encoding="utf-8")
    found = list(_BLOCK.finditer(text))
    blocks = []
    for number, match in enumerate(found):
        following = found[number + 1] if number + 1 < len(found) else None
        output = None
        if following and following["language"] == "text" and match["language"] == "bash":
            between = text[match.end() : following.start()]
            if "\n#" not in between and between.count("\n\n") <= 2:
                output = following["text"]
        blocks.append(Block(match["language"], _dedented(match), match["reason"], output))
    return blocks


def name_of(document: Path) -> str:
    """Return a document's path in the repository."""
    return str(document.relative_to(REPOSITORY))


def commands_of(block: Block) -> list[str]:
    """Return the commands of a shell block, split at ``&&``."""
    lines = block.text.replace("\\\n", " ").splitlines()
    parts = [part.strip() for line in lines for part in line.split("&&")]
    return [part for part in parts if part and not part.startswith("#")]


def _dedented(match: re.Match[str]) -> str:
    lines = [line.removeprefix(match["indent"]) for line in match["text"].splitlines()]
    return "\n".join(lines) + "\n"
