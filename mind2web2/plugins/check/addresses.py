"""The web addresses of a report with their places.

They are links, bare addresses, DOIs, and numbers of papers, trials, data sets and standards.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mind2web2.urls.markdown import bare_addresses, url_span, url_spans
from mind2web2.urls.parts import undo_markdown_escapes

_URL_START = re.compile(r"https?\\?:\\?/\\?/|www\.", re.IGNORECASE)
# A DOI may have "<113::AID-CNE9>" or "[0001:ABC]" in it, unlike a tag.
_DOI_TAIL = (
    r"10\.\d{4,9}/(?:<(?!/?[a-z]+\d?\s*/?>)[^<>\s]{1,40}>(?=[^\s<>])|\[[^\[\]\s]{1,40}\](?=[\w.;<])"
    r"|[^\s<>\"'|\[\]{}，。；])+"
)
# A scholar's address: https://doi.org/ and https://arxiv.org/abs/ lead there.
_IDENTIFIER = re.compile(
    rf"(?:\bdoi\s*:\s*)?(?<![\w/.]){_DOI_TAIL}|\barxiv\s*:\s*\d{{4}}\.\d{{4,5}}(?:v\d+)?",
    re.IGNORECASE,
)
_DOI_ADDRESS = re.compile(rf"https?://(?:dx\.)?doi\.org/(?=\S*[<\[]){_DOI_TAIL}", re.IGNORECASE)
_ARXIV_FIELDS = (
    "astro-ph|cond-mat|gr-qc|hep-(?:ex|lat|ph|th)|math-ph|nlin|nucl-(?:ex|th)|physics|quant-ph"
    "|math|cs|q-bio|q-fin|stat|alg-geom|dg-ga|chao-dyn|cmp-lg|solv-int"
)
_ISBN = r"(?:97[89]-?)?(?:\d-?){9}[\dX]"
# Numbers in a catalogue, and the address of each.
_NUMBERS = (
    (
        r"\bPMIDs?\s?[:#]?\s*(\d{4,9}(?:\s*[,;/]\s*(?:and\s+)?(?:PMID:?\s*)?\d{4,9})*)\b",
        "https://pubmed.ncbi.nlm.nih.gov/{}/",
    ),
    (r"\b(?:PMCID\s?:?\s*)?PMC\s?:?\s?(\d{3,9})\b", "https://pmc.ncbi.nlm.nih.gov/articles/PMC{}/"),
    (r"\bNCT\s?:?\s?(\d{8})\b", "https://clinicaltrials.gov/study/NCT{}"),
    (r"\bGSE\s?(\d{3,7})\b", "https://www.ncbi.nlm.nih.gov/geo/query/acc.cgi?acc=GSE{}"),
    (r"\bRFC[\s-]?(\d{2,5})\b", "https://www.rfc-editor.org/rfc/rfc{}"),
    (rf"\bISBN(?:-1[03])?\s?:?\s?({_ISBN})\b", "https://openlibrary.org/isbn/{}"),
    (
        rf"(?<![\w/.-])(?:arXiv\s?:\s?)?((?:{_ARXIV_FIELDS})(?:\.[A-Z]{{2}})?/\d{{7}}(?:v\d+)?)\b",
        "https://arxiv.org/abs/{}",
    ),
)
_CATALOGUES = [(re.compile(pattern, re.IGNORECASE), url) for pattern, url in _NUMBERS]
_NUMBER = re.compile(rf"[a-z][a-z.-]*/\d{{7}}(?:v\d+)?|{_ISBN}|\d+", re.IGNORECASE)
_NESTED = r"\((?:\\.|[^()\n\\]|\((?:\\.|[^()\n\\])*\))*\)"
# As the link's brackets say; a name of a document may have spaces.
_TARGET = re.compile(
    rf"\(\s*(?:<(?P<angled>[^<>\n]*)>|(?P<plain>(?:\\.|{_NESTED}|[^()\s\\])+"
    rf"(?:(?: (?:{_NESTED}|[^()\s\"'])+)+\.(?:pdf|html?|docx?|xlsx?|pptx?|csv|txt|jpe?g|png))?))"
    r"\s*(?:\"[^\"\n]*\"|'[^'\n]*')?\s*\)",
    re.IGNORECASE,
)
_DEFINITION = re.compile(
    r"^[ \t>]{0,6}\[([^\]\n^][^\]\n]{0,80})\]:[ \t]*<?(https?://\S+?|doi:\S+?)>?(?:[ "
    r"\t]+[\"'(].*)?$",
    re.MULTILINE | re.IGNORECASE,
)
_REFERENCE = re.compile(r"\]\[([^\[\]\n]{0,80})\]")
_ANCHOR = re.compile(
    r"<a\b[^<>]*?\bhref\s*=\s*[\"']?([^\s\"'>]*)[^<>]*>(.*?)</a\s*>",
    re.IGNORECASE | re.DOTALL,
)
_TAG = re.compile(r"<[^<>]*>")
_MAX_NAME_CHARS = 1000


@dataclass(frozen=True, slots=True)
class Address:
    """An address in a text.

    Args:
        start: where it begins, with the markup of its link.
        url: as it is written, without markdown's escapes; empty for a link within the text.
        name: the name of the link; ``None`` for a bare address.
        label: of the definition that has the address, as ``1`` of ``[name][1]``.
    """

    start: int
    end: int
    url: str
    name: str | None = None
    is_picture: bool = False
    label: str = ""


def addresses_in(text: str) -> list[Address]:
    """Return the addresses of a text in order.

    Addresses within the name of a link count as its name.
    """
    links = _outermost([*_anchors(text), *_links(text), *_reference_links(text)])
    links = _outermost([*links, *_dois(_blank_out(text, links))])
    rest = _blank_out(text, links)
    bare = [Address(span.start, span.end, span.url) for span in url_spans(rest)]
    bare = [each for each in bare if "." in each.url or "localhost" in each.url]
    rest = _blank_out(rest, bare)
    identifiers = _outermost([*_identifiers(rest, _IDENTIFIER), *_catalogue_numbers(rest)])
    rest = _blank_out(rest, identifiers)
    without_scheme = [
        Address(span.start, span.end, span.url)
        for span in bare_addresses(rest)
        if "/" in span.url.rstrip("/")
    ]
    found = [*links, *bare, *identifiers, *without_scheme]
    return sorted(found, key=lambda address: address.start)


def _dois(text: str) -> Iterator[Address]:
    return _identifiers(text, _DOI_ADDRESS)


def _identifiers(text: str, pattern: re.Pattern[str]) -> Iterator[Address]:
    for match in pattern.finditer(text):
        written = match[0].rstrip(".,;:!?*_\\")
        while written.endswith(")") and written.count(")") > written.count("("):
            written = written[:-1].rstrip(".,;:")
        url = undo_markdown_escapes(written)
        yield Address(match.start(), match.start() + len(written), url)


def _catalogue_numbers(text: str) -> Iterator[Address]:
    """Yield the numbers of catalogues; each of ``PMIDs 1234, 5678`` is an address of its own."""
    for pattern, url in _CATALOGUES:
        for match in pattern.finditer(text):
            start = match.start()
            for number in _NUMBER.finditer(text, *match.span(1)):
                name = text[start : number.end()]
                yield Address(start, number.end(), url.format(number[0]), name)
                start = number.end()


def _outermost(links: Iterable[Address]) -> list[Address]:
    """Return the links that lie within no other one."""
    outermost: list[Address] = []
    for link in sorted(links, key=lambda each: (each.start, -each.end)):
        if not outermost or link.start >= outermost[-1].end:
            outermost.append(link)
    return outermost


def _blank_out(text: str, addresses: Iterable[Address]) -> str:
    pieces, position = [], 0
    for address in addresses:
        pieces += [text[position : address.start], " " * (address.end - address.start)]
        position = address.end
    return "".join([*pieces, text[position:]])


def _links(text: str) -> Iterator[Address]:
    openings = _openings(text)
    for match in re.finditer(r"\](?=\()", text):
        opening = openings.get(match.start())
        target = _target(text, match.end()) if opening is not None else None
        if opening is None or target is None:
            continue
        end, url = target
        name = text[opening + 1 : match.start()]
        is_picture = text[opening - 1 : opening] == "!"
        named = next(url_spans(name), None)
        # The target was cut, as at a comma; the name is the whole address.
        url = named.url if named and named.url.startswith(url) else url
        written = url if _is_outside(url) else ""
        yield Address(opening - is_picture, end, written, name, is_picture)


def _openings(text: str) -> dict[int, int]:
    """Return for each closing bracket where its opening one stands."""
    pairs: dict[int, int] = {}
    stack: list[int] = []
    for match in re.finditer(r"\\.|\[|\]|\n\s*\n", text):
        mark = match[0]
        if mark == "[":
            stack.append(match.start())
        elif mark == "]" and stack:
            opening = stack.pop()
            if match.start() - opening <= _MAX_NAME_CHARS:
                pairs[match.start()] = opening
        elif mark[0] == "\n":
            stack.clear()
    return pairs


def _target(text: str, start: int) -> tuple[int, str] | None:
    """Return where a link ends, and its target without escapes; ``None`` if it is no link."""
    if target := _TARGET.match(text, start):
        written = target["plain"] if target["angled"] is None else target["angled"]
        return target.end(), html.unescape(undo_markdown_escapes(written.strip()))
    # Its bracket is missing: the address ends as one in the text does.
    scheme = _URL_START.match(text, start + 1)
    span = url_span(text, start + 1, scheme.end()) if scheme else None
    return (span.end, span.url) if span else None


def _is_outside(url: str) -> bool:
    """Tell whether a link's target is a page on the web."""
    return bool(_URL_START.match(url) or _IDENTIFIER.fullmatch(url))


def _reference_links(text: str) -> Iterator[Address]:
    """Yield ``[name][label]`` and ``[label]`` whose label is defined; a number alone is a mark."""
    targets = {
        " ".join(label.split()).lower(): undo_markdown_escapes(url)
        for label, url in _DEFINITION.findall(text)
    }
    if not targets:
        return
    openings = _openings(text)
    for closing, opening in openings.items():
        label = name = text[opening + 1 : closing]
        second = _REFERENCE.match(text, closing)
        end = closing + 1
        if second:
            label, end = second[1] or label, second.end()
        url = targets.get(" ".join(label.split()).lower())
        if url is not None and not name.strip("[]^\\ ").isdigit():
            yield Address(opening, end, url, name, label=label)


def _anchors(text: str) -> Iterator[Address]:
    for match in _ANCHOR.finditer(text):
        url = html.unescape(match[1])
        name = _TAG.sub("", match[2])
        yield Address(*match.span(), url if _is_outside(url) else "", name)
