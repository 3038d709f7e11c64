"""A small HTTP server on loopback whose pages a test sets."""

from servers.local_http import Answer, LocalHttp

OFFICE = "application/vnd.openxmlformats-officedocument"
TYPES = {
    "png": "image/png",
    "css": "text/css",
    "js": "text/javascript",
    "pdf": "application/pdf",
    "docx": f"{OFFICE}.wordprocessingml.document",
    "xlsx": f"{OFFICE}.spreadsheetml.sheet",
    "pptx": f"{OFFICE}.presentationml.presentation",
}


class SmallSite(LocalHttp):
    """Serves ``pages`` (path to text or bytes)."""

    def __init__(self):
        self.pages = {}
        super().__init__(self._page)
        self.port = self._server.server_port

    def _page(self, request):
        body = self.pages.get(request.path)
        kind = TYPES.get(request.path.rpartition(".")[2], "text/html; charset=utf-8")
        content = body if isinstance(body, bytes) else (body or "").encode()
        return Answer(content, 404 if body is None else 200, {"Content-Type": kind})

    @property
    def asked(self):
        """Return the paths that were asked for."""
        return [request.path for request in self.requests]
