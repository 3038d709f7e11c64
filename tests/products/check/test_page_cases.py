"""Pages that are hard to capture, after public bug reports, through ``check --no_judge``."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from projects import REPOSITORY, call, entered, read_json
from servers.local_http import Answer, LocalHttp, Request

from mind2web2.capture.pdf import text_of
from mind2web2.cli import main
from mind2web2.pages.cache import CacheFileSys

FOLDER = REPOSITORY / "tests" / "fixtures" / "page_cases"
# A case has a claim on the page, the page (``html`` with named parts, ``base64`` or ``file``) and
# how it is sent, and what is expected: texts that it ``has``, its ``signs``, and kinds of hints.
PAGES = read_json(FOLDER / "pages.json")
CASES: dict[str, dict[str, Any]] = PAGES["cases"]
NAMES = list(CASES)


@dataclass(frozen=True)
class Checked:
    """The stored pages of the cases by their number, their signs, and the report's hints."""

    texts: dict[int, str]
    signs: dict[int, list[str]]
    hints: list[dict[str, Any]]


def body_of(case: dict[str, Any]) -> bytes:
    if "file" in case:
        return (FOLDER / case["file"]).read_bytes()
    if "base64" in case:
        return base64.b64decode(case["base64"])
    html: str = case["html"]
    for name, part in PAGES["parts"].items():
        html = html.replace(f"{{{name}}}", part)
    return html.encode(case.get("encoding", "utf-8"))


def served(request: Request) -> Answer:
    number = request.path.strip("/")
    if not number.isdigit():
        return Answer(status=404)
    case = CASES[NAMES[int(number)]]
    kind = case.get("type", "text/html; charset=utf-8")
    return Answer(body_of(case), case.get("status", 200), {"Content-Type": kind})


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checked]:
    folder = tmp_path_factory.mktemp("pages")
    with pytest.MonkeyPatch.context() as patch, LocalHttp(served) as site:
        entered(folder, patch)
        cited = [f"{site.url}/{n}{case.get('tail', '')}" for n, case in enumerate(CASES.values())]
        pairs = zip(CASES.values(), cited, strict=True)
        lines = [f"{case['claim']} ([page]({url})).\n" for case, url in pairs]
        Path("report.md").write_text("\n".join(lines), encoding="utf-8")
        options = ("--no_judge", "--allow_private_network", "--no_sandbox", "-o", "hints.json")
        done = call(main, "check", "report.md", *options)
        assert done.returncode == 0, done.stderr
        [first, *_] = (folder / "checks").glob("*/cache/*/*/*.capture.json")
        cache = CacheFileSys(first.parent)
        found = Checked({}, {}, read_json(Path("hints.json")))
        for path in first.parent.glob("*.capture.json"):
            record = read_json(path)
            number = cited.index(record["requested_url"])
            found.signs[number] = [each["kind"] for each in record["troubles"]]
            found.texts[number] = stored_text(cache, record["requested_url"])
        yield found


def stored_text(cache: CacheFileSys, url: str) -> str:
    kind = cache.has(url)
    if kind is None:
        return ""
    text = cache.get_web(url, False)[0] if kind == "web" else text_of(cache.get_pdf(url))
    return " ".join(text.split())


@pytest.mark.parametrize("number", range(len(NAMES)), ids=NAMES)
def test_a_page_is_read_as_it_is_shown_or_has_a_sign(checked: Checked, number: int) -> None:
    case = CASES[NAMES[number]]
    text = checked.texts[number]
    assert [part for part in case.get("has", ()) if part not in text] == [], text
    assert checked.signs[number] == case.get("signs", checked.signs[number]), text
    kinds = {
        hint["kind"]
        for hint in checked.hints
        if hint["statement"] == number or str(hint["source"]).rpartition("/")[2] == str(number)
    }
    assert set(case.get("hints", ())) <= kinds
    assert not kinds & set(case.get("no_hints", ()))
