"""moto's S3 on loopback, also for clients of Google's.

Requests fail when a test asks for it.

with object_store() as store:
    store.url + "/prefix" ... store.fail = lambda number: "lost"
"""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from urllib.parse import quote, unquote

import boto3
import certifi
from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    create_backend_app,
)
from werkzeug.serving import WSGIRequestHandler, make_server

BUCKET = "lab-bucket"


class _Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, *_: object) -> None:
        """Print nothing."""


class ObjectStore:
    """A bucket, its requests, and which of them fail.

    ``fail`` returns, for a request's number, method and path, how it fails: ``refused`` (503),
    ``dropped`` (the connection ends), ``lost`` (it is done, and answered by 503), ``late`` (done,
    and answered when ``patience`` is set); ``None`` for a request that does not.
    """

    def __init__(self, host: str = "127.0.0.1") -> None:
        self.fail: Callable[[int, str, str], str | None] = lambda *_: None
        self.requests: list[tuple[str, str]] = []
        self.patience = threading.Event()
        self._app = _as_google(DomainDispatcherApplication(create_backend_app))
        self._server = make_server(host, 0, self._answer, threaded=True, request_handler=_Quiet)
        self._server.daemon_threads = True
        self.endpoint = f"http://{host}:{self._server.server_port}"
        self.url = f"s3://{BUCKET}"
        self._lock = threading.Lock()

    def _answer(self, environ, start_response):
        with self._lock:
            number = len(self.requests)
            request = environ["REQUEST_METHOD"], environ["PATH_INFO"]
            self.requests.append(request)
        fault = self.fail(number, *request)
        if fault in ("lost", "late"):
            b"".join(self._app(environ, lambda *_: None))
        if fault == "dropped":
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
        if fault == "late":
            self.patience.wait(60)
        if fault is not None:
            environ["wsgi.input"].read(
                int(environ.get("CONTENT_LENGTH") or 0) * (fault == "refused")
            )
            start_response("503 Slow Down", [("Content-Length", "0")])
            return [b""]
        return self._app(environ, start_response)

    @property
    def variables(self) -> dict[str, str]:
        """Return the environment of commands that use the store."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1",
            "GOOGLE_BASE_URL": self.endpoint,
            "GOOGLE_BEARER_TOKEN": "token",
            # obstore takes no client without authorities.
            "SSL_CERT_FILE": certifi.where(),
        }

    @cached_property
    def client(self):
        """A client of the bucket."""
        credentials = {"aws_access_key_id": "key", "aws_secret_access_key": "secret"}
        return boto3.client(
            "s3", endpoint_url=self.endpoint, region_name="us-east-1", **credentials
        )

    def put(self, name: str, content: bytes) -> None:
        """Write an object, past the faults."""
        with self.failing(lambda *_: None):
            self.client.put_object(Bucket=BUCKET, Key=name, Body=content)

    def upload(self, folder: Path, prefix: str) -> None:
        """Copy a folder into the bucket."""
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                self.put(f"{prefix}/{path.relative_to(folder).as_posix()}", path.read_bytes())

    def objects(self, prefix: str = "") -> dict[str, bytes]:
        """Return the bucket's objects by name, past the faults."""
        with self.failing(lambda *_: None):
            client = self.client
            pages = client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
            names = [each["Key"] for page in pages for each in page.get("Contents", ())]
            return {
                name: client.get_object(Bucket=BUCKET, Key=name)["Body"].read() for name in names
            }

    def download(self, prefix: str, folder: Path) -> None:
        """Copy what the bucket has below a prefix to a disk."""
        for name, content in self.objects(f"{prefix}/").items():
            path = folder / name.removeprefix(f"{prefix}/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    @contextmanager
    def failing(self, fail: Callable[[int, str, str], str | None]) -> Iterator[None]:
        """Have requests fail as a function of number, method and path says."""
        before, self.fail = self.fail, fail
        try:
            yield
        finally:
            self.fail = before


def _as_google(app):
    """Translate Google's XML API, which names editions by generations instead of etags."""
    etags = {}

    def translated(environ, start_response):
        if not environ.get("HTTP_AUTHORIZATION", "").startswith("Bearer"):
            return app(environ, start_response)
        # Google's clients encode "-" and "/" too.
        path, _, query = environ["REQUEST_URI"].partition("?")
        environ["REQUEST_URI"] = environ["RAW_URI"] = quote(unquote(path)) + (query and f"?{query}")
        environ["HTTP_AUTHORIZATION"] = (
            "AWS4-HMAC-SHA256 Credential=key/20260101/us-east-1/s3/aws4_request"
        )
        match environ.get("HTTP_X_GOOG_IF_GENERATION_MATCH"):
            case "0":
                environ["HTTP_IF_NONE_MATCH"] = "*"
            case str(generation):
                environ["HTTP_IF_MATCH"] = etags[generation]

        def with_generation(status, headers, *more):
            if etag := dict(headers).get("ETag"):
                generation = str(int(etag[1:15], 16))
                etags[generation] = etag
                headers = [*headers, ("x-goog-generation", generation)]
            return start_response(status, headers, *more)

        return app(environ, with_generation)

    return translated


@contextmanager
def object_store(host: str = "127.0.0.1") -> Iterator[ObjectStore]:
    """Serve an empty bucket."""
    store = ObjectStore(host)
    thread = threading.Thread(target=store._server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        store.client.create_bucket(Bucket=BUCKET)
        store.requests.clear()
        yield store
    finally:
        store.patience.set()
        store._server.shutdown()
        thread.join()
        store._server.server_close()
