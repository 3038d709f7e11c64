"""``mind2web2 check`` on local pages, with a judge that answers by rules."""

import json
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from checked_reports import REPORT, judged, page
from projects import KEY_VARIABLES, call
from servers.judge_server import JudgeServer
from servers.local_http import LocalHttp

from mind2web2.cli import main


@pytest.fixture
def judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[JudgeServer]:
    monkeypatch.chdir(tmp_path)
    for name in KEY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    with JudgeServer(reply=judged) as server, LocalHttp(page) as site:
        monkeypatch.setenv("OPENAI_API_KEY", "dummy")
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        Path("dams.md").write_text(REPORT.format(site.url))
        yield server


def check(*options: object) -> str:
    done = call(main, "check", "dams.md", "--allow_private_network", *options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_each_claim_has_a_verdict_and_the_same_command_asks_nothing_again(
    judge: JudgeServer,
) -> None:
    outputs = [
        option for name in ("found.json", "found.xml", "found.html") for option in ("-o", name)
    ]
    check(*outputs)
    found = json.loads(Path("found.json").read_text())
    assert [each["verdict"] for each in found["statements"]] == [
        *(
            "supported",
            "contradicted",
            "not there",
            "supported",
            "page unavailable",
            "no source given",
            "page unavailable",
        ),
    ]
    assert found["figures"]["precision"]["value"] == 0.5
    assert found["figures"]["coverage"]["value"] == pytest.approx(6 / 7)
    assert found["figures"]["effective_citations"]["value"] == 2
    assert found["invented"] == ["https://no-such-host.invalid/a"]
    suite = ElementTree.parse("found.xml").getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == (
        "6",
        "2",
        "2",
    )
    assert 'class="contradicted"' in Path("found.html").read_text()
    asked = len(judge.requests)
    assert "221" not in check()
    assert len(judge.requests) == asked


def test_a_changed_report_asks_only_about_what_changed(judge: JudgeServer) -> None:
    check()
    asked = len(judge.requests)
    report = Path("dams.md").read_text()
    Path("dams.md").write_text(report.replace("Rain fell.", "Hail fell. [1] Rain fell."))
    check()
    # The claims of the statements nearby, and two votes on the new one.
    assert len(judge.requests) - asked <= 2 + 2


@pytest.mark.usefixtures("judge")
def test_a_figure_below_its_bound_fails() -> None:
    done = call(
        main,
        "check",
        "dams.md",
        "--allow_private_network",
        "--fail_under",
        "precision=.9",
    )
    assert done.returncode == 1
    assert "precision is 0.500, below 0.9" in done.stdout


def test_a_replay_needs_no_judge(judge: JudgeServer) -> None:
    first = check()
    asked = len(judge.requests)
    assert check("--llm_provider", "replay").splitlines()[-12:] == first.splitlines()[-12:]
    assert len(judge.requests) == asked


def test_list_prints_the_statements_alone(judge: JudgeServer) -> None:
    assert len(json.loads(check("--list"))["statements"]) == 7
    assert (judge.requests, Path("checks").exists()) == ([], False)


def test_without_a_key_the_command_prints_hints(
    judge: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    check("-o", "hints.json")
    hints = json.loads(Path("hints.json").read_text())
    assert [(each["kind"], each["statement"], each["detail"].split(":")[0]) for each in hints] == [
        *(("dead source", None, "dead"), ("invented address", None, "invented")),
        *(("date not on the page", 1, "1940"), ("no source", 5, "")),
    ]
    assert judge.requests == []
