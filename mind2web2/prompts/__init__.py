"""Prompts: the instructions as text files, and the blocks that hold untrusted text."""

from functools import cache
from importlib.resources import files

from mind2web2.prompts.blocks import BlockChain, HashedText, encodable, shown_text

__all__ = ["BlockChain", "HashedText", "encodable", "instructions", "shown_text"]


@cache
def instructions(name: str) -> str:
    """Return the text of ``prompts/<name>.md``."""
    return files(__name__).joinpath(f"{name}.md").read_text(encoding="utf-8").strip()
