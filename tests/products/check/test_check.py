"""``mind2web2 check`` on local pages, with a judge that answers by rules."""

import json
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from checked_reports import OLD_PAGE, REPORT, judged, page
from projects import KEY_VARIABLES, call, clean_environment
from servers.archive_server import ArchiveServer
from servers.judge_server import JudgeServer
from servers.local_http import Answer, LocalHttp, Request

from mind2web2.cli import main


@dataclass(frozen=True)
class Project:
    """A folder with a report that was checked once; ``first`` is what the command printed."""

    folder: Path
    judge: JudgeServer
    report: str
    first: str = ""

    def enter(self, patch: pytest.MonkeyPatch) -> None:
        patch.chdir(self.folder)
        patch.setenv("OPENAI_API_KEY", "dummy")
        patch.setenv("OPENAI_BASE_URL", self.judge.base_url)

    def check(self, *options: object, report: str = "", status: int = 0) -> str:
        Path("dams.md").write_text(report or self.report)
        done = call(main, "check", "dams.md", "--allow_private_network", *options)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """Check the report and write each kind of output."""
    with (
        pytest.MonkeyPatch.context() as patch,
        JudgeServer(reply=judged) as server,
        LocalHttp(page) as site,
        ArchiveServer({}) as archive,
    ):
        copy = Answer(f"<p>{OLD_PAGE}</p>".encode(), headers={"Content-Type": "text/html"})
        archive.copies[f"{site.url}/old"] = {"20200101000000": copy}
        for name in KEY_VARIABLES:
            patch.delenv(name, raising=False)
        project = Project(tmp_path_factory.mktemp("project"), server, REPORT.format(site.url))
        project.enter(patch)
        assert len(json.loads(project.check("--list"))["statements"]) == 8
        project.check("--list", "-o", "found.json", status=2)
        assert (server.requests, Path("checks").exists()) == ([], False)
        outputs = [word for end in ("json", "xml", "html") for word in ("-o", f"found.{end}")]
        from_archive = ("--archive", "--archive_url", archive.url)
        yield replace(project, first=project.check(*outputs, *from_archive))


@pytest.fixture
def project(checked: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    checked.enter(monkeypatch)
    return checked


@pytest.mark.usefixtures("project")
def test_each_claim_has_a_verdict() -> None:
    found = json.loads(Path("found.json").read_text())
    assert [each["verdict"] for each in found["statements"]] == [
        "supported",
        "contradicted",
        "not there",
        "supported",
        "page unavailable",
        "no source given",
        "page unavailable",
        "supported",
    ]
    assert found["figures"]["precision"]["value"] == 0.6
    assert found["figures"]["coverage"]["value"] == pytest.approx(7 / 8)
    assert found["figures"]["effective_citations"]["value"] == 3
    assert found["invented"] == []
    suite = ElementTree.parse("found.xml").getroot()[0]
    counts = (suite.get("tests"), suite.get("failures"), suite.get("errors"))
    assert counts == ("7", "2", "2")
    assert str(suite.findtext("testcase/failure")).endswith(
        '/dam: As it is. "The Ayr Dam was built in 1936."'
    )
    assert Path("found.html").stat().st_size > 100_000


@pytest.mark.usefixtures("project")
def test_a_page_with_an_error_status_is_not_read_whatever_it_says() -> None:
    found = json.loads(Path("found.json").read_text())
    (source,) = found["statements"][4]["claims"][0]["sources"]
    assert source["reason"] == "dead: the server answers with an error"


def test_a_quotation_that_is_not_on_the_page_is_marked(project: Project) -> None:
    found = json.loads(Path("found.json").read_text())
    sources = [each for claim in found["statements"][3]["claims"] for each in claim["sources"]]
    assert [each["quote_match"] for each in sources] == [None, "not_found"]
    assert '/mill in words that are not on the page: "Wick burned."\n' in project.first


def test_an_archive_has_the_copy_of_a_page_that_is_gone(project: Project) -> None:
    found = json.loads(Path("found.json").read_text())
    (source,) = found["statements"][-1]["claims"][0]["sources"]
    assert source["page"].endswith(f"/web/20200101000000id_/{source['source']}")
    assert source["page"] in project.first


def test_the_command_that_captures_suspect_pages_again_works_as_typed(project: Project) -> None:
    [line] = [line for line in project.first.splitlines() if "look wrong again: " in line]
    words = shlex.split(line.partition("look wrong again: ")[2])
    done = call(main, *words[words.index("cache") :])
    assert "/gone" in done.stdout


def test_a_replay_needs_no_judge_and_fails_below_a_bound(project: Project) -> None:
    asked = len(project.judge.requests)
    bound = ("--fail_under", "precision=.9")
    lines = project.check("--llm_provider", "replay", *bound, status=1).splitlines()
    assert lines[-2] == "Failed: precision is 60.0%, below 90.0%"
    command = shlex.split(lines[-1].removeprefix("Look at it: "))
    assert Path(command[-1]).is_file()
    assert call(main, *command[command.index("view") :], "--no_browser").returncode == 0
    assert lines[-8:-2] == project.first.splitlines()[-10:-4]
    assert len(project.judge.requests) == asked


def test_the_same_command_asks_nothing_and_flags_pages_about_a_benchmark(
    project: Project,
) -> None:
    asked = len(project.judge.requests)
    for path in Path("checks").rglob("*.capture.json"):
        record = json.loads(path.read_text())
        if record["requested_url"].endswith("/dam"):
            path.write_text(json.dumps(record | {"title": "Tasks of Mind2Web 2"}))
    printed = project.check("-o", "flagged.json")
    flagged = json.loads(Path("flagged.json").read_text())
    assert len(project.judge.requests) == asked
    assert [url.rsplit("/")[-1] for url in flagged["contaminated"]] == ["dam"]
    assert flagged["precision_without"]["of"] == 2
    assert "Citation precision without sources about a benchmark: 50%" in printed


def test_without_a_key_the_command_prints_hints(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = len(project.judge.requests)
    monkeypatch.delenv("OPENAI_API_KEY")
    printed = project.check(
        "-o", "hints.json", report=f"{project.report}\n# More\n\nIt is tall [9]."
    )
    assert "Marks without a source: [9]" in printed
    assert printed.splitlines()[0].startswith("For verdicts, name a judge: set OPENAI_API_KEY")
    refused = call(main, "check", "dams.md", "-o", "hints.html")
    assert (refused.returncode, "set OPENAI_API_KEY" in refused.stderr) == (2, True)
    bound = ("--fail_under", "precision=.1", "--no_judge")
    failed = "Failed: precision cannot be computed: no claim was judged by a page"
    assert project.check(*bound, status=1).splitlines()[-1] == failed
    hints = json.loads(Path("hints.json").read_text())
    assert [(each["kind"], each["statement"], each["detail"].split(":")[0]) for each in hints] == [
        ("dead source", None, "dead"),
        ("unreachable source", None, "not opened"),
        ("date not on the page", 1, "1940"),
        ("no source", 5, ""),
        ("no source", 8, ""),
    ]
    assert len(project.judge.requests) == asked


def test_two_reports_of_one_name_keep_two_results(project: Project, tmp_path: Path) -> None:
    asked = len(project.judge.requests)
    other = tmp_path / "dams.md"
    other.write_text(project.report)
    outputs = ["-o", "both.json", "-o", "both.html", "-o", "both.xml"]
    done = call(main, "check", "dams.md", other, "--allow_private_network", *outputs)
    assert done.returncode == 0, done.stderr
    # The other report has the same pages and claims.
    assert len(project.judge.requests) == asked
    both = json.loads(Path("both.json").read_text())
    assert [each["name"] for each in both] == ["dams", "dams-2"]
    assert ElementTree.parse("both.xml").getroot()[1].get("name") == "dams-2"
    page = Path("both.html").read_text()
    assert page.count("&quot;dams&quot;,") == page.count("&quot;dams-2&quot;,") == 5


def test_a_bound_is_a_share(project: Project) -> None:
    project.check("--fail_under", "precision=90", status=2)


def test_a_changed_report_asks_only_about_what_changed(project: Project) -> None:
    asked = len(project.judge.requests)
    project.check(report=project.report.replace("Rain fell.", "Hail fell. [1] Rain fell."))
    # The claims of the statements nearby, and two votes on the new one.
    assert len(project.judge.requests) - asked <= 2 + 2


def test_what_was_judged_before_the_budget_was_spent_keeps_its_verdict(project: Project) -> None:
    changed = project.report.replace("It snows", "It rains")
    outputs = [word for end in ("json", "xml", "html") for word in ("-o", f"left.{end}")]
    printed = project.check("--max_cost", "0.0001", *outputs, report=changed, status=1)
    assert "\nNOT JUDGED: It rains in Wick.\n" in printed
    assert "\nSUPPORTED: The Ayr Dam was built in 1936.\n" in printed
    left = json.loads(Path("left.json").read_text())
    assert left["not_judged"] == ["It rains in Wick."]
    before = json.loads(Path("found.json").read_text())
    verdicts = [each["verdict"] for each in before["statements"]]
    assert [each["verdict"] for each in left["statements"]] == [
        *verdicts[:2],
        "not judged",
        *verdicts[3:],
    ]
    (source,) = left["statements"][2]["claims"][0]["sources"]
    assert "more than all of max_cost 0.0001" in source["reason"]
    assert left["figures"] == {}
    suite = ElementTree.parse("left.xml").getroot()[0]
    assert (suite.get("failures"), suite.get("errors")) == ("1", "3")
    assert "3 of 4 checked claims hold; 1 is contradicted; not checked: 1 not" in printed
    # What was judged is shown with its pages.
    assert "[&quot;page&quot;,&quot;dams&quot;" in Path("left.html").read_text()


@dataclass(frozen=True)
class Hanging:
    """A server's request hangs until the command is stopped by Ctrl-C."""

    is_asked: threading.Event = field(default_factory=threading.Event)
    may_answer: threading.Event = field(default_factory=threading.Event)

    def wait(self) -> None:
        self.is_asked.set()
        self.may_answer.wait(60)

    def stopped(self, folder: Path, *words: str, **variables: str) -> str:
        """Stop ``check`` while it waits, and return what it prints."""
        process = subprocess.Popen(
            [sys.executable, "-m", "mind2web2", "check", *words, "--allow_private_network"],
            cwd=folder,
            env=clean_environment(**variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self.is_asked.wait(60)
        process.send_signal(signal.SIGINT)
        printed, _ = process.communicate(timeout=60)
        self.may_answer.set()
        assert process.returncode == 130, printed
        return printed


@pytest.mark.parametrize("key", ["dummy", None])
def test_ctrl_c_while_pages_are_captured_writes_what_is_known(
    key: str | None, tmp_path: Path
) -> None:
    """Nothing is judged: each claim is named. Without a judge, the pages so far give hints."""
    hanging = Hanging()

    def hang(_: Request) -> Answer:
        hanging.wait()
        return Answer(b"late")

    with LocalHttp(hang) as site:
        (tmp_path / "lake.md").write_text(f"The lake is deep [1].\n\n[1]: {site.url}/lake\n")
        words = ["lake.md", "-o", "found.json", *(["-o", "found.html"] if key else [])]
        variables = {"OPENAI_API_KEY": key} if key else {}
        printed = hanging.stopped(tmp_path, *words, **variables)
    assert "the same command continues from here.\n" in printed
    found = json.loads((tmp_path / "found.json").read_text())
    if key:
        assert "\nNOT JUDGED: The lake is deep.\n" in printed
        assert found["not_judged"] == ["The lake is deep."]
        assert (tmp_path / "found.html").stat().st_size > 100_000
    else:
        assert [each["kind"] for each in found] == ["unreachable source"]


def test_ctrl_c_while_a_report_is_judged_ends_the_command(tmp_path: Path) -> None:
    """The reports after it are not judged, and both are written."""
    hanging, asked = Hanging(), []

    def hang(body: dict) -> dict:
        asked.append(str(body))
        hanging.wait()
        return judged(body)

    with LocalHttp(page) as site, JudgeServer(reply=hang) as judge:
        for name in ("lake", "hill"):
            text = f"The {name} is old [1].\n\n[1]: {site.url}/dam\n"
            (tmp_path / f"{name}.md").write_text(text)
        key = {"OPENAI_API_KEY": "dummy", "OPENAI_BASE_URL": judge.base_url}
        hanging.stopped(tmp_path, "lake.md", "hill.md", "-o", "found.json", **key)
    assert not any("hill" in body for body in asked)
    found = json.loads((tmp_path / "found.json").read_text())
    assert [each["not_judged"] for each in found] == [["The lake is old."], ["The hill is old."]]
