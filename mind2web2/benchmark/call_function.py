"""Calls an agent's Python function in a process of its own: the other side of ``--callable``."""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
from functools import reduce
from importlib import import_module
from pathlib import Path


def main(module: str, function: str, *files: str) -> None:
    """Write the reply of the function: a text, or a mapping with ``answer`` and perhaps ``cost_usd``.

    Args:
        files: question, answer and meta file; without them, the function is only loaded.
    """
    call = reduce(getattr, function.split("."), import_module(module))
    if not callable(call):
        raise TypeError(f"{module}:{function} is not a function")
    if not files:
        return
    question_file, answer_file, meta_file = files
    reply = call(Path(question_file).read_text(encoding="utf-8"))
    if inspect.isawaitable(reply):
        reply = asyncio.run(_awaited(reply))
    fields = reply if isinstance(reply, dict) else {"answer": reply}
    Path(meta_file).write_text(json.dumps({"cost_usd": fields.get("cost_usd")}), encoding="utf-8")
    if not isinstance(fields.get("answer"), str | None):
        raise TypeError(f"{module}:{function} returned {type(fields['answer']).__name__}, not a text")
    Path(answer_file).write_text(fields.get("answer") or "", encoding="utf-8")


async def _awaited(reply: object) -> object:
    return await reply  # type: ignore[misc]  # checked by the caller


if __name__ == "__main__":
    main(*sys.argv[1:])
