"""The commands, replies and events of Chrome's DevTools protocol that captures use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

if TYPE_CHECKING:
    from patchright.async_api import CDPSession


class ScriptError(Exception):
    """A command or a script of ours failed in a frame: most often because the frame is gone."""


class FrameInfo(TypedDict):
    """A frame of a page."""

    id: str
    parentId: NotRequired[str]
    url: NotRequired[str]


class FrameTree(TypedDict):
    """A frame with the frames in it."""

    frame: FrameInfo
    childFrames: NotRequired[list[FrameTree]]


class AttachedFrame(TypedDict):
    """The event ``Page.frameAttached``."""

    frameId: str
    parentFrameId: str


class Request(TypedDict):
    """A request as the page made it; the fragment comes separately."""

    url: str
    urlFragment: NotRequired[str]
    headers: NotRequired[dict[str, str]]


class Header(TypedDict):
    """One header of a response."""

    name: str
    value: str


class PausedRequest(TypedDict):
    """The event ``Fetch.requestPaused`` of a request, or of its response."""

    requestId: str
    request: Request
    frameId: str
    resourceType: str
    networkId: NotRequired[str]
    redirectedRequestId: NotRequired[str]
    responseErrorReason: NotRequired[str]
    responseStatusCode: NotRequired[int]
    responseHeaders: NotRequired[list[Header]]


class ReceivedData(TypedDict):
    """The event ``Network.dataReceived``."""

    requestId: str
    dataLength: int


class ShadowRoot(TypedDict):
    """A shadow root of an element."""

    backendNodeId: int
    shadowRootType: NotRequired[str]


class Node(TypedDict):
    """An element of a document."""

    frameId: NotRequired[str]
    shadowRoots: NotRequired[list[ShadowRoot]]


class BrandVersion(TypedDict):
    """A name and version under which a browser shows itself."""

    brand: str
    version: str


class UserAgentMetadata(TypedDict):
    """The client hints of a browser."""

    brands: list[BrandVersion]
    fullVersionList: list[BrandVersion]
    platform: str
    platformVersion: str
    architecture: str
    model: str
    mobile: bool


class UserAgentOverride(TypedDict):
    """The parameters of ``Emulation.setUserAgentOverride``."""

    userAgent: str
    acceptLanguage: str
    userAgentMetadata: UserAgentMetadata


# The shape of a reply depends on the command.
async def send(session: CDPSession, method: str, **parameters: Any) -> Any:
    """Send a command and return its reply. Raises ScriptError: it failed, or the page is gone."""
    from patchright.async_api import Error

    try:
        return await session.send(method, parameters)
    except Error as error:
        raise ScriptError(f"{method}: {error.message.splitlines()[0]}") from error


async def frame_tree(session: CDPSession) -> FrameTree:
    """Return the main frame of a session's page with all frames in it.

    Raises ScriptError: it is gone.
    """
    reply = await send(session, "Page.getFrameTree")
    tree: FrameTree = reply["frameTree"]
    return tree
