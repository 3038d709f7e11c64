"""A small HTTP server on loopback whose pages a test sets."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

OFFICE = "application/vnd.openxmlformats-officedocument"
TYPES = {
    "png": "image/png",
    "css": "text/css",
    "js": "text/javascript",
    "pdf": "application/pdf",
    "docx": f"{OFFICE}.wordprocessingml.document",
    "xlsx": f"{OFFICE}.spreadsheetml.sheet",
    "pptx": f"{OFFICE}.presentationml.presentation",
    "epub": "application/epub+zip",
}


class SmallSite:
    """Serves ``pages`` (path to text or bytes) and notes in ``asked`` what was asked for."""

    def __init__(self):
        self.pages = {}
        self.asked = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                path = self.path.partition("?")[0]
                site.asked.append(path)
                body = site.pages.get(path)
                self.send_response(404 if body is None else 200)
                content = body if isinstance(body, bytes) else (body or "").encode()
                kind = TYPES.get(path.rpartition(".")[2], "text/html; charset=utf-8")
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_):
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self.url = f"http://127.0.0.1:{self._server.server_port}/"

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
