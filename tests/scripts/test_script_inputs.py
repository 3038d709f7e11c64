"""A result is reused only while nothing in its script's folder has changed."""

import inspect
import os
import time
from datetime import datetime

import pytest
from projects import ClaimJudge, Project, evaluate, read_json, run_command
from servers.arxiv_server import ArxivServer
from servers.judge_server import JudgeServer

from mind2web2.api_tools import tool_arxiv
from mind2web2.scripts.isolation.homes import fork_server

VERIFY = (
    "leaf = evaluator.add_leaf('leaf', 'leaf')\n"
    "await evaluator.verify(claim=str({claim}), node=leaf)\n"
    "return evaluator.get_summary()"
)
HELPER = (
    "import sys\nsys.path.insert(0, str(pathlib.Path(__file__).parent))\n"
    "from helpers import adv_common\n"
)


def project_with(tmp_path, before: str, claim: str) -> Project:
    """Return a project whose script makes its claim so."""
    project = Project(tmp_path)
    project.add_answer("answer_1")
    project.add_script_body(
        "import datetime, os, pathlib, time\n" + before + VERIFY.format(claim=claim)
    )
    helper = tmp_path / "eval_scripts" / "example" / "helpers" / "adv_common.py"
    helper.parent.mkdir()
    helper.write_text("import helpers.facts\nDEPTH = helpers.facts.DEPTH\n")
    (helper.parent / "facts.py").write_text("DEPTH = '100 m'\n")
    return project


FOLDER = "pathlib.Path(__file__).parent / 'facts'"


def put(path, text="DEPTH = '2,500 m'\n"):
    """Return a change of the files beside the script: a file with another text."""

    def change(root, _monkeypatch):
        target = root / "eval_scripts/example" / path
        target.parent.mkdir(exist_ok=True)
        target.write_text(text)

    return change


def change_in_place(root, _monkeypatch):
    """Change a large file; its size and time stay."""
    path = root / "eval_scripts/example/facts/large.bin"
    was = path.stat()
    with path.open("r+b") as file:
        file.write(b"1")
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))


LARGE = f"({FOLDER} / 'large.bin').read_bytes()[:1]"
LATER = f"({FOLDER}).with_name('later')"
FACT = f"{FOLDER} / 'a.json'"
A_JSON = put("facts/a.json")
PARSED = "etree.parse(str(pathlib.Path(__file__).parent / 'facts/a.xml')).getroot().tag"
# The code before the claim, the claim, and a change that gives another claim.
CHANGES = {
    "a helper": ("import common\n", "common.DEPTH", put("common.py")),
    "a helper's helper": ("import common\n", "common.DEPTH", put("depths.py")),
    "a package that hides a helper": (
        "import common\n",
        "common.DEPTH",
        put("common/__init__.py"),
    ),
    "a helper by a path of its own": (
        HELPER,
        "adv_common.DEPTH",
        put("helpers/facts.py"),
    ),
    "a file": ("", f"({FACT}).read_text()", A_JSON),
    "a file in a thread": ("", f"await asyncio.to_thread(({FACT}).read_text)", A_JSON),
    "a file that C opens": (
        "from lxml import etree\n",
        PARSED,
        put("facts/a.xml", "<b/>"),
    ),
    "a large file": ("", LARGE, change_in_place),
    "a new file": ("", f"({LATER}).is_file()", put("later")),
    "a new folder": ("", f"os.path.lexists({LATER})", put("later/a")),
    "what may be read": ("", f"os.access({LATER}, os.R_OK)", put("later")),
    "a list of files": ("", f"sorted(os.listdir({FOLDER}))", put("facts/b.json")),
    "a glob": ("", f"len(list(({FOLDER}).glob('*.json')))", put("facts/b.json")),
    "a program's output": (
        "import subprocess\n",
        f"subprocess.run(['cat', {FACT}], capture_output=True).stdout.decode()",
        A_JSON,
    ),
    "a shell's output": ("", f"os.popen('cat ' + str({FACT})).read()", A_JSON),
    "an installed module": (
        "import sys\nsys.path.insert(0, str(pathlib.Path(__file__).parent / 'site'))\nimport "
        "lakes\n",
        "lakes.DEPTH",
        put("site/lakes.py"),
    ),
}


@pytest.mark.parametrize("name", CHANGES)
async def test_each_kind_of_change_is_noticed(tmp_path, monkeypatch, name):
    before, claim, change = CHANGES[name]
    project = project_with(tmp_path, before, claim)
    for path, text in {
        "common.py": "import depths\nDEPTH = depths.DEPTH\n",
        "depths.py": "DEPTH = '100 m'\n",
        "facts/a.json": "{}",
        "facts/a.xml": "<a/>",
        "facts/large.bin": "0" * 65 * 1024**2,
        "site/lakes.py": "DEPTH = '100 m'\n",
    }.items():
        if "large" not in path or "large" in name:
            put(path, text)(tmp_path, monkeypatch)
    judge = ClaimJudge()
    [first] = await evaluate(project, judge)
    [again] = await evaluate(project, judge)
    assert (first.reason, again.reused, len(set(judge.claims))) == (None, True, 1)
    assert len(project.result_paths()) == 1
    change(tmp_path, monkeypatch)
    [changed] = await evaluate(project, judge)
    assert (changed.reused, len(set(judge.claims))) == (False, 2)
    assert len(project.result_paths()) == 2


@pytest.mark.parametrize(
    ("claim", "is_read"),
    [
        ("datetime.date.today()", True),
        ("datetime.datetime.now()", True),
        ("time.time()", True),
        ("__import__('dateutil.parser').parser.parse('10 March')", True),
        ("time.monotonic() > 0", False),
        ("logger.warning('a record has the time') or os.getpid()", False),
    ],
)
async def test_reading_the_clock_is_noticed(tmp_path, claim, is_read):
    project = project_with(tmp_path, "", claim)
    [outcome] = await evaluate(project, ClaimJudge())
    clock = outcome.result.document["provenance"]["inputs"]["clock"]
    assert (clock is not None) is is_read
    today = datetime.now().astimezone().date().isoformat()
    assert clock is None or clock["moment"].startswith(today)


async def test_a_paper_has_one_answer(tmp_path, monkeypatch):
    """The answer is kept beside the judgments.

    A second script, and a replay without network, get the same.
    """
    ask = (
        "from mind2web2.api_tools import ArxivTool\n"
        "paper = await ArxivTool().search_arxiv_by_id('2401.00001')\n"
    )
    project = project_with(tmp_path, ask, "paper['title']")
    project.add_answer("answer_2", "Another answer.")
    server = ArxivServer()
    with server.serve() as web:
        monkeypatch.setattr(
            inspect.unwrap(tool_arxiv.ArxivTool.__init__),
            "__kwdefaults__",
            {"api_url": web.url, "request_interval_s": 0.0},
        )
        found = await evaluate(project, ClaimJudge())
        asked = len(web.requests)
    [record] = found[0].result.document["provenance"]["inputs"]["services"]
    assert (asked, record["request"]) == (1, "arxiv by_id('2401.00001')")
    again = await evaluate(project, ClaimJudge())
    replayed = await evaluate(project, None, reuse=False)
    in_process = await evaluate(project, None, reuse=False)
    assert [each.reused for each in again] == [True, True]
    assert [each.score for each in (*replayed, *in_process)] == [1.0] * 4


class TestAsOf:
    """``--as_of``, through the command line."""

    @pytest.fixture
    def project(self, tmp_path):
        """A project whose claim is the date that its script sees."""
        return project_with(
            tmp_path, "", "datetime.datetime.now().isoformat() + time.strftime(' %Y')"
        )

    @pytest.fixture(autouse=True)
    def _in_a_far_time_zone(self, monkeypatch):
        """Set the time zone of this process and of the processes of scripts."""

        def begin_again():
            time.tzset()
            fork_server.close()

        monkeypatch.setenv("TZ", "Asia/Tokyo")
        begin_again()
        yield
        monkeypatch.undo()
        begin_again()

    def run(self, project, server, *options):
        """Evaluate by the command."""
        judge = ["--judge_base_url", server.base_url, "--judge_model", "judge-1"]
        return run_command("--agent_name", "bot", *judge, *options, cwd=project.root)

    def claim(self, project):
        """Return the claim of the newest result, and what is noted of the clock."""
        result = read_json(project.result_paths()[-1])
        leaf = result["eval_breakdown"][0]["verification_tree"]["children"][0]
        return leaf["evidence"]["claim"], result["provenance"]["inputs"]

    @pytest.mark.parametrize(
        ("as_of", "claim"),
        [
            ("2025-03-14", "2025-03-14T12:00:00 2025"),
            ("2025-03-14T23:59", "2025-03-14T23:59:00 2025"),
            ("answer", "2024-12-31T08:00:00 2024"),
        ],
    )
    def test_a_script_sees_the_date(self, project, as_of, claim):
        """A replay sees it again, and the run says who read the clock."""
        meta = project.root / "answers/bot/lake/answer_1.meta.json"
        meta.write_text('{"created": "2024-12-30T23:00:00Z"}')
        with JudgeServer() as server:
            run = self.run(project, server, "--as_of", as_of)
            assert run.returncode == 0, run.stderr
            seen, inputs = self.claim(project)
            assert (seen, inputs["clock"]["zone"]) == (claim, "Asia/Tokyo")
            assert "1 script read the clock: lake" in run.stdout
            again = self.run(project, server, "--as_of", as_of)
            assert again.returncode == 0
            assert len(project.result_paths()) == 1
            if as_of.endswith("T23:59"):
                self.run(project, server, "--as_of", "2025-03-14T09:00")
                assert self.claim(project)[0] == "2025-03-14T09:00:00 2025"
                project.result_paths()[-1].unlink()
            self.run(project, server, "--as_of", "2020-01-01")
            assert self.claim(project)[0] == "2020-01-01T12:00:00 2020"
            project.result_paths()[-1].unlink()
        replay = run_command("--agent_name", "bot", "--llm_provider", "replay", cwd=project.root)
        assert replay.returncode == 0, replay.stdout
        assert self.claim(project)[0] == claim

    def test_without_a_date_an_answer_is_as_old_as_its_file(self, project):
        """A copy keeps it where the times of files are kept."""
        answer = project.root / "answers/bot/lake/answer_1.md"
        made = datetime.fromisoformat("2023-05-06T07:08:09+09:00").timestamp()
        os.utime(answer, (made, made))
        with JudgeServer() as server:
            self.run(project, server, "--as_of", "answer")
        assert self.claim(project)[0] == "2023-05-06T07:08:09 2023"

    def test_what_is_no_date_is_refused(self, project):
        run = run_command("--agent_name", "bot", "--as_of", "spring", cwd=project.root)
        assert run.returncode == 2
        assert "neither a date such as 2025-03-14 nor 'answer'" in run.stderr

    def test_an_answer_without_a_proper_date_has_no_result(self, project):
        (project.root / "answers/bot/lake/answer_1.meta.json").write_text('{"created": "spring"}')
        with JudgeServer() as server:
            run = self.run(project, server, "--as_of", "answer")
        assert run.returncode == 1
        assert "created 'spring' is not a date" in run.stdout
