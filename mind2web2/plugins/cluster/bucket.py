"""The objects below one URL: bounded, retried requests, conditional writes, errors in one line."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeVar
from urllib.parse import urlsplit

from mind2web2.errors import StorageError, UsageError
from mind2web2.utils.retry import PassingError, Tries, tried_in_thread

if TYPE_CHECKING:
    from obstore import UpdateVersion

T = TypeVar("T")

_URL = re.compile(r"(?P<scheme>s3|gs|az)://[^/?#]+(/[^?#]*)?")
# obstore retries 5xx, dropped connections and, for reads, timeouts. Other failures are retried
# here, where a write finds out whether the one before was done after all.
_REQUEST_TIMEOUT = timedelta(seconds=30)
_CONNECT_TIMEOUT = timedelta(seconds=5)
_MAX_RETRIES = 5
_RETRY_TIMEOUT = timedelta(seconds=60)
_TRIES = Tries(4, first_wait_s=0.2, total_s=60.0)
_REASON_CHARS = 300
_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound")
# Variables with the server's address.
_SERVERS = {
    "s3": ("AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    "gs": ("GOOGLE_BASE_URL",),
    "az": ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
}
_KEYS = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "gs": "GOOGLE_SERVICE_ACCOUNT",
    "az": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
}


def checked_url(url: str) -> str:
    """Return the URL of a root without a slash at its end.

    Raises:
        UsageError: it is of another form.
    """
    if _URL.fullmatch(url) is None:
        raise UsageError(f"{url!r} is no root: give a folder, s3://BUCKET/PREFIX, gs:// or az://")
    return url.rstrip("/")


@dataclass(frozen=True, slots=True)
class Edition:
    """One edition of an object, as conditional writes name it."""

    etag: str
    version: str | None = None


class Bucket:
    """The objects below the URL of a root; names are relative to it.

    Raises:
        UsageError: the extra ``cloud`` is not installed, or the URL cannot be used.
    """

    def __init__(self, url: str) -> None:
        try:
            import obstore
            from obstore.exceptions import BaseError
            from obstore.store import from_url
        except ModuleNotFoundError:
            raise UsageError(
                f"{url} needs the package obstore: install mind2web2 with the extra 'cloud' "
                "(uv sync --extra cloud)"
            ) from None
        self.url = url
        self._obstore = obstore
        self._keys = _KEYS[urlsplit(url).scheme]
        with_http = os.environ.get("AWS_ALLOW_HTTP", "").lower() in ("1", "true")
        _check_server(url, with_http)
        try:
            self._store = from_url(
                url,
                client_options={
                    "timeout": _REQUEST_TIMEOUT,
                    "connect_timeout": _CONNECT_TIMEOUT,
                    "allow_http": with_http,
                },
                retry_config={
                    "max_retries": _MAX_RETRIES,
                    "retry_timeout": _RETRY_TIMEOUT,
                },
            )
        except (BaseError, ValueError) as error:
            raise UsageError(f"cannot use {url}: {_reason(error)}; set {self._keys}") from error

    def listing(self, folder: str) -> dict[str, str]:
        """Return the etags of the objects in a folder and below, or of the object of this name."""

        def list_objects() -> dict[str, str]:
            found = [
                each for page in self._obstore.list(self._store, folder or None) for each in page
            ]
            if not found and folder:
                with suppress(FileNotFoundError):
                    found = [self._obstore.head(self._store, folder)]
            # A bucket may hold any name; these would lead out of the working copy.
            return {
                each["path"]: _quote_etag(each["e_tag"] or "")
                for each in found
                if ".." not in each["path"].split("/")
            }

        return self._request(list_objects, folder)

    def get(self, name: str) -> tuple[bytes, Edition] | None:
        """Return an object's content and edition; ``None`` if there is none."""

        def content() -> tuple[bytes, Edition] | None:
            try:
                found = self._obstore.get(self._store, name)
            except FileNotFoundError:
                return None
            return bytes(found.bytes()), Edition(found.meta["e_tag"] or "", found.meta["version"])

        return self._request(content, name)

    def put(self, name: str, content: bytes) -> Edition:
        """Write an object, whether there is one or not."""
        return self._request(lambda: self._put_object(name, content, "overwrite"), name)

    def create(self, name: str, content: bytes) -> Edition | None:
        """Write an object that does not exist yet; ``None`` if one of another content does."""
        return self._write_unless_changed(
            name, content, lambda: self._put_object(name, content, "create")
        )

    def replace(self, name: str, content: bytes, seen: Edition) -> Edition | None:
        """Replace this edition of an object; ``None`` if there is another edition or none."""
        condition: UpdateVersion = {"e_tag": seen.etag}
        if seen.version is not None:
            condition["version"] = seen.version
        return self._write_unless_changed(
            name, content, lambda: self._put_object(name, content, condition)
        )

    def delete(self, name: str) -> None:
        """Delete an object, if there is one."""

        def delete_object() -> None:
            try:
                self._obstore.delete(self._store, name)
            except FileNotFoundError:
                return

        self._request(delete_object, name)

    def _put_object(
        self,
        name: str,
        content: bytes,
        mode: UpdateVersion | Literal["create", "overwrite"],
    ) -> Edition:
        # One request each: only so can it be conditional.
        result = self._obstore.put(self._store, name, content, mode=mode, use_multipart=False)
        return Edition(result["e_tag"] or "", result["version"])

    def _write_unless_changed(
        self, name: str, content: bytes, write: Callable[[], Edition]
    ) -> Edition | None:
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        try:
            return self._request(write, name)
        except (AlreadyExistsError, PreconditionError, FileNotFoundError):
            # It may be our own, written by a request whose response was lost.
            found = self.get(name)
            if found is not None and found[0] == content:
                return found[1]
            return None

    def _request(self, ask: Callable[[], T], name: str) -> T:
        try:
            return tried_in_thread(partial(self._asked_once, ask, name), _TRIES)
        except PassingError as failure:
            raise StorageError(str(failure)) from failure.__cause__

    def _asked_once(self, ask: Callable[[], T], name: str) -> T:
        from obstore.exceptions import (
            AlreadyExistsError,
            BaseError,
            GenericError,
            PreconditionError,
        )

        try:
            return ask()
        except (AlreadyExistsError, PreconditionError, FileNotFoundError):
            raise
        except (BaseError, OSError) as error:
            # Only errors of server and connection may pass.
            is_foreign = isinstance(error, GenericError | OSError)
            if is_foreign and not _is_permanent(str(error)):
                raise PassingError(self._failure(error, name)) from error
            raise StorageError(self._failure(error, name)) from error

    def _failure(self, error: Exception, name: str) -> str:
        text = str(error)
        place = f"{self.url}/{name}".rstrip("/")
        if any(code in text for code in _NO_BUCKET):
            return f"{place}: the bucket does not exist; check the URL and the endpoint"
        if "169.254.169.254" in text or "metadata.google" in text:
            return f"{place}: no credentials; set {self._keys}"
        if type(error).__name__ in ("PermissionDeniedError", "UnauthenticatedError"):
            return (
                f"{place}: access is denied; check credentials, region and policy "
                f"({_reason(error)})"
            )
        return f"{place}: the object store failed: {_reason(error)}; run the same command again"


def _quote_etag(etag: str) -> str:
    """Return an etag as requests for single objects have it: Azure lists etags without quotes."""
    if not etag or etag.endswith('"'):
        return etag
    return f'"{etag}"'


def server_of(url: str) -> str:
    """Return the server of a root, with Azure's account; empty for the scheme's own."""
    scheme = urlsplit(url).scheme
    names = (
        (*_SERVERS[scheme], "AZURE_STORAGE_ACCOUNT_NAME") if scheme == "az" else _SERVERS[scheme]
    )
    return " ".join(filter(None, map(os.environ.get, names)))


def _check_server(url: str, with_http: bool) -> None:
    """Make sure that obstore can use the server."""
    for name in _SERVERS[urlsplit(url).scheme]:
        address = os.environ.get(name)
        if address and re.match("https?://[^/]", address) is None:
            raise UsageError(f"{name} takes an address such as https://s3.example, not {address!r}")
        if address and address.startswith("http:") and not with_http:
            raise UsageError(
                f"{name} {address} is not encrypted: to use it, set AWS_ALLOW_HTTP=true"
            )


def _is_permanent(text: str) -> bool:
    return any(
        sign in text for sign in (*_NO_BUCKET, "169.254.169.254", "BadScheme", "without LOCATION")
    )


def _reason(error: Exception) -> str:
    return str(error).partition("\n")[0][:_REASON_CHARS]
