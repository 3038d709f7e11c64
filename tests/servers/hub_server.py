"""A dataset server on loopback.

It has the Hugging Face Hub's listing of a revision, and serves its files by redirect.
"""

import hashlib
import json
import re

from servers.local_http import Answer, LocalHttp

COMMIT = "c0ffee" + "0" * 34


def blob_id(content):
    """Return the id that git gives a file."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class HubServer(LocalHttp):
    """Serves ``files`` of the gated dataset ``osunlp/Mind2Web-2`` to the bearer of ``token``.

    Args:
        files: contents by path.
        large: paths that are kept as LFS objects, listed by SHA-256.
        override: returns another answer to a request, or ``None``.
    """

    def __init__(self, files, token="hf_good", large=(), override=lambda _request: None):
        self.files, self.token, self.large, self.override = (
            dict(files),
            token,
            large,
            override,
        )
        self.commit = COMMIT
        super().__init__(self.reply)

    def reply(self, request):
        """Answer as the hub: the listing is public, files need an account with access."""
        if (other := self.override(request)) is not None:
            return other
        if re.fullmatch(r"/api/datasets/osunlp/Mind2Web-2/revision/[\w.-]+", request.path):
            return Answer(
                json.dumps(
                    {
                        "id": "osunlp/Mind2Web-2",
                        "sha": self.commit,
                        "siblings": list(self.listing()),
                    }
                ).encode()
            )
        if found := re.fullmatch(r"/datasets/osunlp/Mind2Web-2/resolve/(\w+)/(.+)", request.path):
            return self.file(request, *found.groups())
        if request.path.startswith("/cdn/"):
            return Answer(self.files[request.path.removeprefix("/cdn/")])
        return Answer(status=404)

    def listing(self):
        """Yield the entries of the listing with ``blobs=true``."""
        for path, content in self.files.items():
            lfs = {
                "sha256": hashlib.sha256(content).hexdigest(),
                "size": len(content),
                "pointerSize": 130,
            }
            large = {"lfs": lfs, "blobId": blob_id(b"pointer")} if path in self.large else {}
            yield {
                "rfilename": path,
                "blobId": blob_id(content),
                "size": len(content),
            } | large

    def file(self, request, commit, path):
        """Redirect to the file where the account may read it."""
        bearer = {name.lower(): text for name, text in request.headers.items()}.get("authorization")
        if bearer is None:
            return Answer(status=401, headers={"X-Error-Code": "GatedRepo"})
        if bearer != f"Bearer {self.token}":
            return Answer(status=403, headers={"X-Error-Code": "GatedRepo"})
        if commit != self.commit or path not in self.files:
            return Answer(status=404)
        content = self.files[path]
        digest = hashlib.sha256(content).hexdigest() if path in self.large else blob_id(content)
        if request.method == "HEAD":
            headers = {"X-Repo-Commit": commit, "ETag": f'"{digest}"'}
            return Answer(headers=headers, promised_bytes=len(content))
        return Answer(status=302, headers={"Location": f"/cdn/{path}"})

    def fetched(self):
        """Return the files that were sent, in order."""
        return [
            request.path.removeprefix("/cdn/")
            for request in self.requests
            if request.method == "GET" and "/cdn/" in request.path
        ]
