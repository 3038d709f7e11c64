"""Reads the text of everything visible on a page, out of the rendered page and all its frames."""

from __future__ import annotations

import asyncio
import logging
import re
from dataclasses import dataclass
from functools import cache
from typing import TypedDict

from mind2web2.capture.page.devtools import ScriptError
from mind2web2.capture.page.isolated_world import FrameWorld, script

log = logging.getLogger(__name__)

MAX_NODES = 1_000_000
FRAME_TIMEOUT_S = 20.0

# Each is a factory whose result the later ones use; the last is the reader itself.
_PARTS = {
    "dom": "page_dom",
    "visibility": "page_visibility",
    "counters": "style_counters",
    "generated": "generated_text",
    "mayGenerate": "generated_candidates",
    "standIns": "stand_ins",
    "writer": "text_writer",
    "tables": "table_text",
    "tableParts": "table_parts",
    "raised": "raised_text",
    "rowItems": "row_items",
}

# The reader leaves the id of each visible frame between these; it keeps no control characters of
# the page.
_FRAME_MARK = re.compile("\x01([^\x01\n]*)\x01")


@dataclass(frozen=True, slots=True)
class PageText:
    """The visible text of a page, as Markdown without links and escapes.

    Args:
        is_cut: more text was there than the limit on characters or nodes.
        unread_frames: addresses of visible frames that could not be read.
    """

    text: str
    title: str
    is_cut: bool
    password_fields: int
    unread_frames: tuple[str, ...]


class _Reading(TypedDict):
    """The text of one frame, with marks in the places of its frames."""

    text: str
    title: str
    is_cut: bool
    password_fields: int
    unread_frames: list[str]


async def read_text(worlds: list[FrameWorld], max_chars: int) -> PageText:
    """Read the visible text of a page's frames, each at its place in its parent's text.

    Args:
        worlds: as ``open_worlds`` gives them: the main frame first, parents before their children.
        max_chars: of the text; the rest is cut off and ``is_cut`` is set.

    Raises:
        ScriptError: the main frame cannot be read, or not in time.
    """
    main, *others = worlds
    readings = await asyncio.gather(
        _read_frame(main, max_chars),
        *(_read_child(world, max_chars) for world in others),
    )
    by_id = {
        world.frame_id: reading
        for world, reading in zip(worlds, readings, strict=True)
        if reading is not None
    }
    return await asyncio.to_thread(_combine, worlds, by_id, max_chars)


@cache
def _reader() -> str:
    made = "".join(f"parts.{name} = ({script(file)}\n)(parts);\n" for name, file in _PARTS.items())
    reader = script("read_page")
    return (
        f"(...limits) => {{\nconst parts = {{}};\n{made}return ({reader}\n)(parts, ...limits);\n}}"
    )


async def _read_frame(world: FrameWorld, max_chars: int) -> _Reading:
    try:
        async with asyncio.timeout(FRAME_TIMEOUT_S):
            reading: _Reading = await world.evaluate(_reader(), max_chars, MAX_NODES)
    except TimeoutError as error:
        raise ScriptError(
            f"{world.url} did not let itself be read within {FRAME_TIMEOUT_S:g} s"
        ) from error
    return reading


async def _read_child(world: FrameWorld, max_chars: int) -> _Reading | None:
    try:
        return await _read_frame(world, max_chars)
    except ScriptError as error:
        log.debug("frame not read url=%s reason=%s", world.url, error)
        return None


def _combine(worlds: list[FrameWorld], by_id: dict[str, _Reading], max_chars: int) -> PageText:
    texts: dict[str, str] = {}
    shown: dict[str, list[str]] = {}
    urls = {world.frame_id: world.url for world in worlds}
    for world in reversed(worlds):  # children before their parents
        if (reading := by_id.get(world.frame_id)) is not None:
            marks: list[str] = _FRAME_MARK.findall(reading["text"])
            shown[world.frame_id] = marks
            texts[world.frame_id] = _splice(reading["text"], texts, max_chars)
    main_id = worlds[0].frame_id
    visible = _visible_frames(main_id, shown)
    readings = [by_id[frame_id] for frame_id in visible if frame_id in by_id]
    unread = [urls.get(frame_id, "") for frame_id in visible if frame_id not in by_id]
    unread += [url for reading in readings for url in reading["unread_frames"]]
    text = texts[main_id]
    return PageText(
        text=text[:max_chars].strip("\n"),
        title=by_id[main_id]["title"],
        is_cut=len(text) > max_chars or any(reading["is_cut"] for reading in readings),
        password_fields=sum(reading["password_fields"] for reading in readings),
        unread_frames=tuple(unread),
    )


def _visible_frames(main_id: str, shown: dict[str, list[str]]) -> list[str]:
    visible = [main_id]
    for frame_id in visible:  # grows while it is read; a frame stands at one place only
        visible += [child for child in shown.get(frame_id, ()) if child not in visible]
    return visible


def _splice(text: str, texts: dict[str, str], max_chars: int) -> str:
    """Put frames' texts in the place of their marks, with their indentation."""
    if "\x01" not in text:
        return text
    lines: list[str] = []
    size = 0
    for line in text.split("\n"):
        mark = _FRAME_MARK.search(line)
        if mark is None:
            added = [line]
        elif _is_alone(line, mark):
            lead = line[: mark.start()]
            rest = re.sub(r"[^>\s]", " ", lead)
            inner = texts.get(mark[1], "").split("\n")
            added = [((rest if i else lead) + part).rstrip() for i, part in enumerate(inner)]
        else:
            added = [_FRAME_MARK.sub(lambda match: _on_one_line(texts.get(match[1], "")), line)]
        lines += added
        size += sum(map(len, added))
        if size > max_chars * 2:
            break
    return "\n".join(lines).replace("\x01", "")


def _is_alone(line: str, mark: re.Match[str]) -> bool:
    return mark.end() == len(line) and not re.search(r"[^\s>\-*\d.):]", line[: mark.start()])


def _on_one_line(text: str) -> str:
    return " / ".join(part.strip() for part in text.split("\n") if part.strip()).replace("|", "\\|")
