"""The web addresses of a report with their places.

They are links, bare addresses, DOIs, and numbers of papers, trials, data sets and standards.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from mind2web2.plugin import (
    Address,
    AddressText,
)

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
# An address, a host with a path, or a local one: a host alone is a name.
_PAGE = re.compile(r"https?://[^/]*(?:\.|localhost|\])|www\.|(?!https?:)[^/]+/.", re.IGNORECASE)


def addresses_in(text: str) -> list[Address]:
    """Return the addresses of a text in order; the address of a link within the text is empty."""
    rest = AddressText(text)
    found = list(map(_within, rest.take([*rest.links(), *_identifiers(text, _DOI_ADDRESS)])))
    found += rest.take(each for each in rest.shown() if _PAGE.match(each.url))
    found += rest.take([*_identifiers(rest.rest, _IDENTIFIER), *_catalogue_numbers(rest.rest)])
    return sorted(found, key=lambda address: address.start)


def _within(link: Address) -> Address:
    is_source = link.is_outside or _IDENTIFIER.fullmatch(link.url)
    return link if is_source else replace(link, url="")


def _identifiers(text: str, pattern: re.Pattern[str]) -> Iterator[Address]:
    for match in pattern.finditer(text):
        written = match[0].rstrip(".,;:!?*_\\")
        while written.count(")") > written.count("("):
            written = written[:-1].rstrip(".,;:")
        yield Address.written_at(match.start(), written)


def _catalogue_numbers(text: str) -> Iterator[Address]:
    """Yield the numbers of catalogues; each of ``PMIDs 1234, 5678`` is an address of its own."""
    for pattern, url in _CATALOGUES:
        for match in pattern.finditer(text):
            start = match.start()
            for number in _NUMBER.finditer(text, *match.span(1)):
                name = text[start : number.end()]
                yield Address(start, number.end(), url.format(number[0]), name)
                start = number.end()
