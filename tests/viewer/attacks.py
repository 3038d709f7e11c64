"""Texts that would do something if they were taken for more than text."""

import json
from pathlib import Path

WRITTEN_ESCAPE = r"a \u202e b \\u202e c \\\u2066"
ATTACKS = [
    WRITTEN_ESCAPE,
    *json.loads(Path(__file__).with_name("attacks.json").read_text(encoding="utf-8")),
    "e" + "\u0301" * 500,
    "[" * 3000 + "x" + "]" * 3000,
    "> " * 2000 + "x",
    "- " * 1500 + "x",
    "*" * 5000,
    "`" * 3001 + "x",
    "W" * 20_000,
    "| a " * 400 + "|\n" + "| - " * 400 + "|\n" + "| x " * 400 + "|",
    "<b>" * 3000,
]
