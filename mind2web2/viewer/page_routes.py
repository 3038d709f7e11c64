"""The routes by which a person and the browser extension mend stored pages."""

from __future__ import annotations

from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mind2web2.errors import UsageError
from mind2web2.viewer.catalog import NoSuchResultError
from mind2web2.viewer.page_review import PageReview
from mind2web2.viewer.server import JsonResponse
from mind2web2.viewer.stored_pages import PageKey

MAX_UPLOAD_BYTES = 200 * 1024**2
Model = TypeVar("Model", bound=BaseModel)


class Asked(BaseModel):
    """A page, and the decision about it."""

    model_config = ConfigDict(frozen=True)

    agent: str
    task: str
    url: str
    decision: Literal["right", "wrong", "remove"] = "right"

    @property
    def key(self) -> PageKey:
        """Return the page."""
        return PageKey(self.agent, self.task, self.url)


class ExtensionCapture(BaseModel):
    """A page as the browser extension sends it; ``actual_url`` is where the browser ended up."""

    model_config = ConfigDict(frozen=True)

    task_id: str
    url: str
    text: str = ""
    screenshot_base64: str | None = None
    actual_url: str | None = None


class ExtensionTarget(BaseModel):
    """The page that the extension is to capture next."""

    model_config = ConfigDict(frozen=True)

    task_id: str
    url: str
    agent: str | None = None


class PageRoutes:
    """The routes of one session; they share the page that the extension is to capture."""

    def __init__(self, review: PageReview, agents: list[str]) -> None:
        self._review = review
        self._agents = agents
        self._target: ExtensionTarget | None = None

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route("/api/pages", self._list),
            Route("/api/page-decision", self._decide, methods=["POST"]),
            Route("/api/page-undo", self._undo, methods=["POST"]),
            Route("/api/page-recapture", self._recapture, methods=["POST"]),
            Route("/api/page-upload", self._upload, methods=["POST"]),
            Route("/api/capture/target", self._show_target),
            Route("/api/capture/target", self._set_target, methods=["POST"]),
            Route("/api/capture", self._extension_capture, methods=["POST"]),
            Route("/api/upload-pdf/{task}", self._upload_pdf, methods=["POST"]),
            Route("/api/upload-mhtml/{task}", self._upload_mhtml, methods=["POST"]),
        ]

    async def _list(self, request: Request) -> Response:
        return JsonResponse(
            await run_in_threadpool(self._review.listed, request.query_params.get("agent", ""))
        )

    async def _decide(self, request: Request) -> Response:
        asked = await _read(request, Asked)
        return JsonResponse(await run_in_threadpool(self._review.decide, asked.key, asked.decision))

    async def _undo(self, request: Request) -> Response:
        asked = await _read(request, Asked)
        return JsonResponse(await run_in_threadpool(self._review.undo, asked.key))

    async def _recapture(self, request: Request) -> Response:
        return JsonResponse(await self._review.recapture((await _read(request, Asked)).key))

    async def _upload(self, request: Request) -> Response:
        """Store a file as it was uploaded: a PDF, an MHTML file, or an image or a text of the page."""
        asked = request.query_params
        key = PageKey(asked.get("agent", ""), asked.get("task", ""), asked.get("url", ""))
        content = await _body(request)
        kind = request.headers.get("content-type", "").partition(";")[0]
        if _is_mhtml(content):
            return JsonResponse(await self._review.upload_mhtml(key, content))
        stored: dict[str, Any] = {}
        if kind == "application/pdf" or content.startswith(b"%PDF"):
            stored["pdf"] = content
        elif kind.startswith("image/"):
            stored["screenshot"] = content
        elif kind.startswith("text/"):
            stored["text"] = content.decode("utf-8", "replace")
        else:
            raise UsageError(
                f"cannot store a file of type {kind or 'unknown'}: choose a PDF, MHTML, image or text"
            )
        return JsonResponse(await run_in_threadpool(lambda: self._review.upload(key, **stored)))

    async def _show_target(self, _: Request) -> Response:
        return JsonResponse(None if self._target is None else self._target.model_dump())

    async def _set_target(self, request: Request) -> Response:
        self._target = await _read(request, ExtensionTarget)
        return JsonResponse(self._target.model_dump())

    async def _extension_capture(self, request: Request) -> Response:
        sent = await _read(request, ExtensionCapture)
        key = PageKey(self._agent(sent.task_id), sent.task_id, sent.url)
        row = await run_in_threadpool(
            lambda: self._review.upload(
                key, text=sent.text, screenshot=sent.screenshot_base64, actual_url=sent.actual_url
            )
        )
        return JsonResponse({"success": True, "page": row})

    async def _upload_pdf(self, request: Request) -> Response:
        task = request.path_params["task"]
        key = PageKey(self._agent(task), task, request.query_params.get("url", ""))
        content = await _body(request)
        row = await run_in_threadpool(lambda: self._review.upload(key, pdf=content))
        return JsonResponse({"success": True, "page": row})

    async def _upload_mhtml(self, request: Request) -> Response:
        task = request.path_params["task"]
        key = PageKey(self._agent(task), task, request.query_params.get("url", ""))
        row = await self._review.upload_mhtml(key, await _body(request))
        return JsonResponse({"success": True, "page": row})

    def _agent(self, task: str) -> str:
        """Return whose page the extension sends: the target's agent, or the only one that is shown."""
        if self._target is not None and self._target.task_id == task and self._target.agent in self._agents:
            return str(self._target.agent)
        if len(self._agents) == 1:
            return self._agents[0]
        raise UsageError("several agents are shown: choose the page in the viewer first")


async def _read(request: Request, model: type[Model]) -> Model:
    try:
        return model.model_validate_json(await _body(request))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise UsageError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error


def _is_mhtml(content: bytes) -> bool:
    head = content[:4096].lower()
    return b"mime-version:" in head and b"multipart/related" in head


async def _body(request: Request) -> bytes:
    """Return the body, or the one file of a form."""
    if request.headers.get("content-type", "").startswith("multipart/form-data"):
        length = request.headers.get("content-length", "")
        if not length.isdecimal() or int(length) > MAX_UPLOAD_BYTES:
            raise UsageError(
                f"the form is larger than {MAX_UPLOAD_BYTES // 1024**2} MB, or does not say how large"
            )
        async with request.form(max_files=1, max_part_size=MAX_UPLOAD_BYTES) as form:
            for value in form.values():
                if isinstance(value, UploadFile):
                    return await value.read()
        raise NoSuchResultError("the form holds no file")
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > MAX_UPLOAD_BYTES:
            raise UsageError(f"the file is larger than {MAX_UPLOAD_BYTES // 1024**2} MB")
        chunks.append(chunk)
    return b"".join(chunks)
