"""Our own JavaScript in a page: in worlds that the page's scripts can neither see nor change."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from mind2web2.capture.page.devtools import (
    FrameInfo,
    FrameTree,
    Node,
    ScriptError,
    frame_tree,
    send,
)

if TYPE_CHECKING:
    from patchright.async_api import CDPSession, Frame, Page

log = logging.getLogger(__name__)

WORLD_NAME = "mind2web2"

_MAX_NESTED_ROOTS = 5
_MAX_FRAMES = 400
# Both maps live in the parent frame's isolated world: element to frame id, and element to closed
# shadow root. Only the world's own property counts: a page may name an element like a map.
_MARK_FRAMES = (
    "(ids) => { globalThis.frameIds ="
    " new Map(pageFrames.map((frame, index) => [frame, ids[index]])); }"
)
_MARK_ROOT = (
    "function (root) { if (!Object.hasOwn(globalThis, 'closedRoots')) globalThis.closedRoots = new "
    "Map();"
    " closedRoots.set(this, root); }"
)

# A document that neither scrolls nor has scripts or controls is complete as it is.
_MAY_HAVE_MORE = (
    "() => Document.prototype.querySelector.call(document, "
    "'script, iframe, button, details, input, label, [role], [hidden], [onclick], [aria-expanded]')"
    " !== null || document.documentElement.scrollHeight > innerHeight + 4"
)


@cache
def script(name: str) -> str:
    """Return the function expression in ``scripts/<name>.js``."""
    return files("mind2web2.capture").joinpath("scripts", f"{name}.js").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class FrameWorld:
    """The isolated world of one document.

    Args:
        frame_id: of the frame; its place in the parent's document is marked with it, see
            ``open_worlds``.
        parent_id: ``None`` for the page's main frame.
        installed: names of the scripts that the world has already.
    """

    session: CDPSession
    frame_id: str
    parent_id: str | None
    url: str
    context_id: int
    installed: set[str] = field(default_factory=set, compare=False)

    async def call(self, name: str, *arguments: Any) -> Any:
        """Call the function in ``scripts/<name>.js`` and return its value, or its promise's.

        Raises:
            ScriptError: it threw, or the frame is gone.
        """
        return await self.evaluate(script(name), *arguments)

    async def evaluate(self, function: str, *arguments: Any) -> Any:
        """Call a function given as source text; see ``call``."""
        reply = await send(
            self.session,
            "Runtime.callFunctionOn",
            functionDeclaration=function,
            executionContextId=self.context_id,
            arguments=[{"value": argument} for argument in arguments],
            returnByValue=True,
            awaitPromise=True,
        )
        if "exceptionDetails" in reply:
            details = reply["exceptionDetails"]
            raise ScriptError(
                details.get("exception", {}).get("description") or details.get("text")
            )
        return reply["result"].get("value")

    async def handle(self, function: str) -> str:
        """Return the remote object id of the result of a function given as source text.

        Raises:
            ScriptError: it threw, or the frame is gone.
        """
        reply = await send(
            self.session,
            "Runtime.callFunctionOn",
            functionDeclaration=function,
            executionContextId=self.context_id,
        )
        if "objectId" not in reply["result"]:
            raise ScriptError("the script returned no object")
        return str(reply["result"]["objectId"])


async def open_main_world(session: CDPSession) -> FrameWorld:
    """Open a world in the main frame alone, whose maps of frames and closed roots are not filled.

    Raises:
        ScriptError: it cannot be entered.
    """
    frame = (await frame_tree(session))["frame"]
    return await _world_of(session, frame, None)


async def open_worlds(page: Page, session: CDPSession, name: str = WORLD_NAME) -> list[FrameWorld]:
    """Open a world in every frame of a page, parents before their children.

    A world of the same name in the same document is the same one.

    In the parent's world ``globalThis.frameIds`` maps each frame's element to the frame's id, and
    ``globalThis.closedRoots`` maps hosts to the shadow roots that only the page itself could open.
    The worlds are valid until their documents are replaced. Frames past the first 400 are left out.

    Raises:
        ScriptError: the main frame cannot be entered. Other frames that cannot be are left out.
    """
    tree = await frame_tree(session)
    worlds = await _worlds_of_tree(session, tree, name)
    known = len(worlds)
    # A frame of another site runs in a process of its own, with a session of its own.
    if len(page.frames) > known:
        frames = [frame for frame in page.frames if frame.parent_frame is not None][:_MAX_FRAMES]
        for frame_session in await asyncio.gather(*(_own_session(page, frame) for frame in frames)):
            if frame_session is not None:
                worlds += await _worlds_of_tree(
                    frame_session, await frame_tree(frame_session), name
                )
    worlds = worlds[:_MAX_FRAMES]
    await asyncio.gather(*map(_mark_closed_roots, worlds))
    parents = {world.parent_id for world in worlds}
    await asyncio.gather(*(_mark_frames(world) for world in worlds if world.frame_id in parents))
    return worlds


async def worlds_with_more(worlds: list[FrameWorld]) -> list[FrameWorld]:
    """Return the main frame's world and those whose documents may show more after a press."""
    main, *others = worlds
    may_have_more = await asyncio.gather(*(_may_have_more(world) for world in others))
    return [
        main,
        *(world for world, more in zip(others, may_have_more, strict=True) if more),
    ]


async def _may_have_more(world: FrameWorld) -> bool:
    try:
        return bool(await world.evaluate(_MAY_HAVE_MORE))
    except ScriptError as error:
        log.debug("frame is gone url=%s reason=%s", world.url, error)
        return False


async def _worlds_of_tree(session: CDPSession, tree: FrameTree, name: str) -> list[FrameWorld]:
    frames = [tree["frame"]]
    waiting = [tree]
    while waiting:
        children = waiting.pop(0).get("childFrames", [])
        frames += [child["frame"] for child in children]
        waiting += children
    main, *others = frames[:_MAX_FRAMES]
    worlds = [await _world_of(session, main, main.get("parentId"), name)]
    opened = await asyncio.gather(
        *(_world_of(session, frame, frame.get("parentId"), name) for frame in others),
        return_exceptions=True,
    )
    for world in opened:
        if isinstance(world, FrameWorld):
            worlds.append(world)
        elif not isinstance(world, ScriptError):
            raise world
    return worlds


async def _world_of(
    session: CDPSession,
    frame: FrameInfo,
    parent_id: str | None,
    name: str = WORLD_NAME,
) -> FrameWorld:
    reply = await send(session, "Page.createIsolatedWorld", frameId=frame["id"], worldName=name)
    return FrameWorld(
        session,
        frame["id"],
        parent_id,
        frame.get("url", ""),
        reply["executionContextId"],
    )


async def _own_session(page: Page, frame: Frame) -> CDPSession | None:
    from patchright.async_api import Error

    try:
        return await page.context.new_cdp_session(frame)
    except Error:  # it shares its parent's process, or is gone
        return None


async def _mark_frames(parent: FrameWorld) -> None:
    try:
        _, nodes = await _described(parent, "() => globalThis.pageFrames")
        await parent.evaluate(_MARK_FRAMES, [node.get("frameId") for node in nodes])
    except ScriptError as error:
        log.debug("frames not marked url=%s reason=%s", parent.url, error)


async def _mark_closed_roots(world: FrameWorld) -> None:
    try:
        # Roots may hold hosts of their own.
        for _ in range(_MAX_NESTED_ROOTS):
            if not await world.call("suspected_hosts"):
                return
            hosts, nodes = await _described(world, "() => globalThis.suspectedHosts")
            closed = [
                (host, root["backendNodeId"])
                for host, node in zip(hosts, nodes, strict=True)
                for root in node.get("shadowRoots", [])
                if root.get("shadowRootType") == "closed"
            ]
            for host, root_id in closed:
                await _mark_root(world, host, root_id)
            if not closed:
                return
    except ScriptError as error:
        if world.parent_id is None:
            raise
        log.debug("frame is gone url=%s reason=%s", world.url, error)


async def _mark_root(world: FrameWorld, host: str, root_id: int) -> None:
    resolved = await send(
        world.session,
        "DOM.resolveNode",
        backendNodeId=root_id,
        executionContextId=world.context_id,
    )
    await send(
        world.session,
        "Runtime.callFunctionOn",
        functionDeclaration=_MARK_ROOT,
        objectId=host,
        arguments=[{"objectId": resolved["object"]["objectId"]}],
    )


async def _described(world: FrameWorld, expression: str) -> tuple[list[str], list[Node]]:
    """Return the remote object ids of an array's elements, and their nodes."""
    array = await world.handle(expression)
    reply = await send(world.session, "Runtime.getProperties", objectId=array, ownProperties=True)
    elements = [one["value"]["objectId"] for one in reply["result"] if one["name"].isdecimal()]
    return elements, await asyncio.gather(*(_describe(world, each) for each in elements))


async def _describe(world: FrameWorld, element: str) -> Node:
    reply = await send(world.session, "DOM.describeNode", objectId=element, depth=0)
    node: Node = reply["node"]
    return node
