"""arXiv's query interface on loopback: Atom answers about a few papers."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from servers.local_http import Answer, Request, Service


@dataclass(frozen=True)
class Paper:
    """One paper with all its versions."""

    paper_id: str
    title: str
    versions: int = 1
    authors: Sequence[str] = ("Ada Example",)
    comment: str | None = None


PAPERS = (
    Paper("2401.00002", "Finding Rivers, Revisited: A Survey"),
    Paper(
        "2401.00001",
        "Finding  Rivers,\n  Revisited",
        3,
        ("Ada Example", "Bo Sample"),
        "12 pages",
    ),
    Paper("hep-th/9901001", r"Strings & $\alpha$-Corrections in G\"odel Space"),
    Paper("2402.12345", "Mind-Bending: Models 1.5"),
    Paper("2402.12346", "Mind Bending Models 15"),
)


class ArxivServer(Service):
    """Serves PAPERS."""

    def answer(self, request: Request) -> Answer:
        """Return the answer to a request."""
        if request.query.get("id_list"):
            entries = [_by_id(wanted) for wanted in request.query["id_list"].split(",")]
        else:
            entries = [
                _entry(paper, paper.versions)
                for paper in PAPERS
                if _matches(paper, request.query["search_query"])
            ]
        return feed([entry for entry in entries if entry])


def feed(entries: Sequence[str], total: int | None = None) -> Answer:
    """Answer with an Atom feed of these entries, which counts ``total`` matches."""
    count = len(entries) if total is None else total
    body = f"""<?xml version="1.0" encoding="UTF-8"?>
<feed xmlns="http://www.w3.org/2005/Atom">
  <title type="html">ArXiv Query</title>
  <opensearch:totalResults xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/">{count}</opensearch:totalResults>
  {"".join(entries)}
</feed>
"""
    return Answer(body.encode(), headers={"Content-Type": "application/atom+xml; charset=UTF-8"})


def _by_id(wanted: str) -> str:
    for paper in PAPERS:
        match = re.fullmatch(re.escape(paper.paper_id) + r"(?:v(\d+))?", wanted)
        if match is not None:
            version = int(match[1] or paper.versions)
            return _entry(paper, version) if version <= paper.versions else ""
    return ""


def _matches(paper: Paper, query: str) -> bool:
    """Search as arXiv does: a quoted phrase in order, other words anywhere in the title."""
    words = re.findall(r"\w+", paper.title.lower())
    phrase = re.fullmatch(r'ti:"(.*)"', query)
    if phrase is not None:
        return f" {phrase[1].lower()} " in f" {' '.join(words)} "
    return all(term.removeprefix("ti:").lower() in words for term in query.split(" AND "))


def _entry(paper: Paper, version: int) -> str:
    address = f"{paper.paper_id}v{version}"
    authors = "".join(f"<author><name>{escape(name)}</name></author>" for name in paper.authors)
    arxiv = 'xmlns:arxiv="http://arxiv.org/schemas/atom"'
    comment = (
        f"<arxiv:comment {arxiv}>{escape(paper.comment)}</arxiv:comment>" if paper.comment else ""
    )
    return f"""<entry>
    <id>http://arxiv.org/abs/{address}</id>
    <updated>2024-01-0{version}T12:00:00Z</updated>
    <published>2024-01-01T12:00:00Z</published>
    <title>{escape(paper.title)}</title>
    <summary>  What it is about.
</summary>
    {authors}{comment}
    <link href="http://arxiv.org/abs/{address}" rel="alternate" type="text/html"/>
    <link title="pdf" href="http://arxiv.org/pdf/{address}" rel="related" type="application/pdf"/>
    <arxiv:primary_category {arxiv} term="cs.IR" scheme="http://arxiv.org/schemas/atom"/>
    <category term="cs.IR" scheme="http://arxiv.org/schemas/atom"/>
    <category term="cs.CL" scheme="http://arxiv.org/schemas/atom"/>
  </entry>"""
