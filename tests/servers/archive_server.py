"""A web archive on loopback.

It has the Internet Archive's availability API, and copies in their raw form.
"""

import json
import re
from datetime import datetime

from servers.local_http import Answer, LocalHttp

_COPY = re.compile(r"/web/(\d{14})(id_)?/(.+)")


def _moment(stamp):
    return datetime.strptime(stamp, "%Y%m%d%H%M%S")


class ArchiveServer(LocalHttp):
    """Serves ``copies``: the answers of archived pages, by URL and timestamp."""

    def __init__(self, copies):
        self.copies = copies
        super().__init__(self.reply)

    def reply(self, request):
        """Answer as the API or with a copy; the form with the archive's own frame is not served."""
        if request.path == "/wayback/available":
            return Answer(json.dumps(self.availability(request.query)).encode(), headers=JSON)
        copy = _COPY.fullmatch(request.path)
        found = copy and copy[2] and self.copies.get(copy[3], {}).get(copy[1])
        return found or Answer(status=404)

    def availability(self, query):
        """Return the copy nearest to the timestamp, or the newest, as the archive words it."""
        stamps = list(self.copies.get(query["url"], ()))
        if not stamps:
            return {"url": query["url"], "archived_snapshots": {}}
        wanted = _moment(query.get("timestamp", max(stamps)))
        nearest = min(stamps, key=lambda stamp: abs(_moment(stamp) - wanted))
        url = f"{self.url}/web/{nearest}/{query['url']}"
        closest = {"status": "200", "available": True, "url": url, "timestamp": nearest}
        return {"url": query["url"], "archived_snapshots": {"closest": closest}}


JSON = {"Content-Type": "application/json"}
