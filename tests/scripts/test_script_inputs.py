"""What a script read: noted in its result, and compared before the result is reused."""

import importlib
import inspect
import os
import shutil
import subprocess
import sys
import time
from datetime import datetime
from functools import partial

import pytest
from projects import ClaimJudge, Project, evaluate, read_json, run_command
from servers.arxiv_server import ArxivServer
from servers.judge_server import JudgeServer

from mind2web2.api_tools import tool_arxiv
from mind2web2.scripts.inputs import InputsNow, ScriptInputs, changed_inputs
from mind2web2.scripts.isolation.processes import fork_server
from mind2web2.scripts.isolation.run import Isolation

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


async def test_a_changed_helper_module_is_noticed(tmp_path):
    """Also one that a helper imports itself; its bytecode may have been compiled before."""
    project = project_with(tmp_path, HELPER, "adv_common.DEPTH")
    judge = ClaimJudge()
    [first] = await evaluate(project, judge)
    assert set(first.result.document["provenance"]["inputs"]["modules"]) == {
        "helpers/adv_common.py",
        "helpers/facts.py",
    }
    [again] = await evaluate(project, judge)
    assert again.reused
    (tmp_path / "eval_scripts/example/helpers/facts.py").write_text(
        "DEPTH = '2,500 m'\n"
    )
    [changed] = await evaluate(project, judge)
    assert not changed.reused
    assert set(judge.claims) == {"100 m", "2,500 m"}


@pytest.mark.parametrize(
    ("before", "claim", "name"),
    [
        (
            "",
            "pathlib.Path(__file__).with_name('facts.json').read_text()",
            "facts.json",
        ),
        (
            "import asyncio\n",
            "await asyncio.to_thread(pathlib.Path('facts.json').read_text)",
            "../../facts.json",
        ),
        ("import sqlite3\n", "sqlite3.connect('facts.json')", "../../facts.json"),
        ("", "os.open('facts.json', os.O_RDONLY)", "../../facts.json"),
    ],
)
async def test_a_changed_file_is_noticed(tmp_path, before, claim, name, monkeypatch):
    """By whatever call the script opens it; what it wrote itself, and what we read, does not count."""
    monkeypatch.chdir(tmp_path)
    scratch = "pathlib.Path('scratch.txt').write_text('x')\npathlib.Path('scratch.txt').read_text()\n"
    project = project_with(tmp_path, before + scratch, claim)
    path = (tmp_path / "eval_scripts" / "example" / name).resolve()
    path.write_text("deep")
    [first] = await evaluate(project, ClaimJudge())
    assert first.reason is None
    assert list(first.result.document["provenance"]["inputs"]["files"]) == [name]
    [again] = await evaluate(project, ClaimJudge())
    path.write_text("shallow")
    [changed] = await evaluate(project, ClaimJudge())
    assert (again.reused, changed.reused) == (True, False)


@pytest.mark.parametrize(
    "look",
    [
        "try: open(__file__ + '.json')\nexcept OSError: pass\n",
        "pathlib.Path(__file__ + '.json').exists()\n",
        "os.path.isfile(__file__ + '.json'), pathlib.Path(__file__).parent.exists()\n",
    ],
)
async def test_a_file_that_was_missing_is_noticed(tmp_path, look):
    """A script may go on without it."""
    project = project_with(tmp_path, look, "'deep'")
    [first] = await evaluate(project, ClaimJudge())
    assert first.result.document["provenance"]["inputs"]["files"] == {
        "lake.py.json": None
    }
    (tmp_path / "eval_scripts/example/lake.py.json").write_text("{}")
    [again] = await evaluate(project, ClaimJudge())
    assert not again.reused


FOLDER = "pathlib.Path(__file__).parent / 'facts'"


def put(path):
    """Return a change of the files: a new file, in a new folder if need be."""

    def change(root):
        target = root / "eval_scripts/example" / path
        target.parent.mkdir(exist_ok=True)
        target.write_text("DEPTH = 'other'\n")

    return change


def add_folder(root):
    """Change the files: a new folder."""
    (root / "eval_scripts/example/later").mkdir()


def change_in_place(root):
    """Change a large file; its size and time stay."""
    path = root / "eval_scripts/example/facts/large.bin"
    was = path.stat()
    with path.open("r+b") as file:
        file.write(b"1")
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))


@pytest.mark.parametrize(
    ("before", "claim", "change", "reason"),
    [
        (
            "",
            f"sorted(os.listdir({FOLDER}))",
            put("facts/b.json"),
            "list of files in facts changed",
        ),
        (
            "",
            f"len(list(({FOLDER}).glob('*.json')))",
            put("facts/b.json"),
            "list of files in facts changed",
        ),
        (
            "import glob\n",
            f"len(glob.glob(str({FOLDER} / '*')))",
            put("facts/b.json"),
            "list of files in facts changed",
        ),
        (
            "",
            f"[len(list(os.scandir({FOLDER})))]",
            put("facts/b.json"),
            "list of files in facts changed",
        ),
        (
            "",
            f"({FOLDER}).with_name('later').is_dir()",
            add_folder,
            "file later is new",
        ),
        (
            "",
            f"os.path.lexists(({FOLDER}).with_name('later'))",
            add_folder,
            "file later is new",
        ),
        (
            "",
            f"os.access(({FOLDER}).with_name('later'), os.R_OK)",
            add_folder,
            "file later is new",
        ),
        (
            "",
            f"({FOLDER} / 'large.bin').read_bytes()[:1]",
            change_in_place,
            "file facts/large.bin changed",
        ),
    ],
)
async def test_what_a_script_looks_up_is_compared(
    tmp_path, before, claim, change, reason
):
    """Lists of folders, whether files exist, and large files."""
    project = project_with(tmp_path, before, claim)
    put("facts/a.json")(tmp_path)
    with (tmp_path / "eval_scripts/example/facts/large.bin").open("wb") as file:
        file.truncate(65 * 1024**2)
    [first] = await evaluate(project, ClaimJudge())
    [again] = await evaluate(project, ClaimJudge())
    change(tmp_path)
    [changed] = await evaluate(project, ClaimJudge())
    assert (first.reason, again.reused, changed.reused) == (None, True, False)
    assert reason in changed.changed


async def test_a_package_that_hides_a_helper_is_noticed(tmp_path):
    """A folder of the module's name comes first."""
    project = project_with(tmp_path, HELPER, "adv_common.DEPTH")
    [first] = await evaluate(project, ClaimJudge())
    [again] = await evaluate(project, ClaimJudge())
    put("helpers/facts/__init__.py")(tmp_path)
    [changed] = await evaluate(project, ClaimJudge())
    assert (first.reason, again.reused, changed.reused) == (None, True, False)
    assert (
        "helpers/facts.py is hidden by the package helpers/facts/__init__.py"
        in changed.changed
    )


@pytest.mark.parametrize(
    ("before", "claim", "reason"),
    [
        (
            "import subprocess\n",
            "subprocess.run(['true']).returncode",
            "starts programs",
        ),
        ("", "os.system('true')", "starts programs"),
        (
            "with os.popen('echo deep') as output: output.read()\n",
            "1",
            "starts programs",
        ),
        (
            "import contextlib, socket\n"
            "with contextlib.suppress(OSError): socket.create_connection(('127.0.0.1', 1))\n",
            "1",
            "opens connections",
        ),
        (
            "import contextlib\nfrom mind2web2.api_tools import PDFParser\n"
            "with contextlib.suppress(Exception): await PDFParser().extract('http://127.0.0.1:1/a.pdf')\n",
            "1",
            "opens connections",
        ),
        (
            "import contextlib, urllib.request\n"
            "with contextlib.suppress(OSError): urllib.request.urlopen('http://127.0.0.1:1/')\n",
            "1",
            "opens connections",
        ),
    ],
)
async def test_what_cannot_be_compared_is_judged_again(tmp_path, before, claim, reason):
    """Its content comes from elsewhere, and the reason says so."""
    project = project_with(tmp_path, before, claim)
    [first] = await evaluate(project, ClaimJudge())
    [again] = await evaluate(project, ClaimJudge())
    assert first.reason is None
    assert f"the script {reason}, whose results are not compared" in again.changed


async def test_files_that_compiled_code_opens_are_not_compared(tmp_path):
    """By lxml no hook sees them; a text that is parsed needs no file."""
    for claim, reused in (
        ("etree.fromstring('<a/>').tag", True),
        ("etree.parse('a.xml').getroot().tag", False),
    ):
        project = project_with(
            tmp_path / claim[6:11],
            "from lxml import etree\nos.chdir(pathlib.Path(__file__).parent)\n",
            claim,
        )
        (project.root / "eval_scripts/example/a.xml").write_text("<a/>")
        await evaluate(project, ClaimJudge())
        [again] = await evaluate(project, ClaimJudge())
        assert again.reused is reused


def install(site, module, distribution, version):
    """Install a package into a folder, in place of another version of it."""
    for metadata in site.glob("*.dist-info"):
        shutil.rmtree(metadata)
    (site / module).mkdir(parents=True, exist_ok=True)
    (site / module / "__init__.py").write_text("DEPTH = '100 m'\n")
    metadata = site / f"{distribution.replace('-', '_')}-{version}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
    )
    (metadata / "top_level.txt").write_text(f"{module}\n")


@pytest.mark.parametrize("distribution", ["lake_depths", "Depths-of-Lakes"])
async def test_another_version_of_a_package_is_noticed(
    tmp_path, monkeypatch, distribution
):
    """Of one that is no dependency of the toolkit, also where its name is not its module's."""
    site = tmp_path / "lib" / "site-packages"
    monkeypatch.syspath_prepend(site)
    monkeypatch.delitem(sys.modules, "lake_depths", raising=False)
    install(site, "lake_depths", distribution, "1.0")
    project = project_with(
        tmp_path,
        f"import sys\nsys.path.insert(0, {str(site)!r})\nimport lake_depths, pydantic, PIL\n",
        "lake_depths.DEPTH",
    )
    [first] = await evaluate(project, ClaimJudge())
    inputs = first.result.document["provenance"]["inputs"]
    assert inputs["packages"] == {distribution: "1.0"}
    [again] = await evaluate(project, ClaimJudge())
    install(site, "lake_depths", distribution, "1.1")
    importlib.invalidate_caches()
    [changed] = await evaluate(project, ClaimJudge())
    assert (again.reused, changed.reused, changed.changed) == (
        True,
        False,
        f"package {distribution} 1.0 is now 1.1",
    )


async def test_packages_of_one_namespace_are_told_apart(tmp_path, monkeypatch):
    """A namespace has no file of its own; only the distribution counts that has the imported package."""
    site = tmp_path / "lib" / "site-packages"
    monkeypatch.syspath_prepend(site)
    for module in ("lakes", "lakes.depths"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    versions = {"lakes-depths": "1.0", "lakes-names": "2.0"}

    def install_all():
        for metadata in site.glob("*.dist-info"):
            shutil.rmtree(metadata)
        for distribution, version in versions.items():
            package = distribution.replace("-", "/")
            (site / package).mkdir(parents=True, exist_ok=True)
            (site / package / "__init__.py").write_text("DEPTH = '100 m'\n")
            metadata = site / f"{distribution.replace('-', '_')}-{version}.dist-info"
            metadata.mkdir()
            (metadata / "METADATA").write_text(
                f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
            )
            (metadata / "RECORD").write_text(f"{package}/__init__.py,,\n")

    install_all()
    project = project_with(
        tmp_path,
        f"import sys\nsys.path.insert(0, {str(site)!r})\nfrom lakes import depths\n",
        "depths.DEPTH",
    )
    [first] = await evaluate(project, ClaimJudge())
    inputs = first.result.document["provenance"]["inputs"]
    assert inputs["packages"] == {"lakes-depths": "1.0"}
    reused = []
    for name in ("lakes-names", "lakes-depths"):
        versions[name] = "3.0"
        install_all()
        importlib.invalidate_caches()
        [again] = await evaluate(project, ClaimJudge())
        reused.append(again.reused)
    assert reused == [True, False]


@pytest.mark.parametrize(
    ("name", "claim"),
    [("HOME", "pathlib.Path.home()"), ("LANG", "os.environ.get('LANG')")],
)
async def test_a_changed_account_is_noticed(tmp_path, monkeypatch, name, claim):
    """Every script gets these variables; they count where it may read them."""
    project = project_with(tmp_path, "", claim)
    await evaluate(project, ClaimJudge())
    [again] = await evaluate(project, ClaimJudge())
    monkeypatch.setenv(name, str(tmp_path))
    [changed] = await evaluate(project, ClaimJudge())
    assert (again.reused, changed.reused, changed.changed) == (
        True,
        False,
        f"variables changed: {name}",
    )


async def test_a_changed_variable_is_noticed_and_not_written_down(tmp_path):
    """It may be a secret."""
    project = project_with(tmp_path, "", "'deep'")
    given = partial(Isolation, variables={"TOKEN": "secret-1"})
    [first] = await evaluate(project, ClaimJudge(), isolation=given())
    [again] = await evaluate(project, ClaimJudge(), isolation=given())
    [other] = await evaluate(
        project, ClaimJudge(), isolation=Isolation(variables={"TOKEN": "secret-2"})
    )
    assert [again.reused, other.reused] == [True, False]
    assert "secret-1" not in str(first.result.document)
    assert list(first.result.document["provenance"]["inputs"]["variables"]) == ["TOKEN"]


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
    """By the script itself or by a library for it, but not by our own code."""
    project = project_with(tmp_path, "", claim)
    [outcome] = await evaluate(project, ClaimJudge())
    clock = outcome.result.document["provenance"]["inputs"]["clock"]
    assert (clock is not None and clock["is_read"]) is is_read
    assert clock is None or clock["moment"].startswith(
        datetime.now().astimezone().date().isoformat()
    )


def test_a_script_that_reads_the_clock_is_reused_on_the_same_date_only(tmp_path):
    """Another time zone counts as well."""
    made = {
        "moment": "2025-03-14T12:00:00.000000+01:00",
        "zone": "Europe/Berlin",
        "is_read": True,
    }
    inputs = ScriptInputs.model_validate({"clock": made})
    for changes, words in (
        ({"moment": "2025-03-14T23:00:00.000000+01:00"}, []),
        (
            {"moment": "2025-03-15T00:00:00.000000+01:00"},
            ["the script reads the clock: it ran as of 2025-03-14, now 2025-03-15"],
        ),
        ({"zone": "UTC"}, ["time zone Europe/Berlin, now UTC"]),
    ):
        now = InputsNow(inputs.clock.model_copy(update=changes))
        assert list(changed_inputs(inputs, tmp_path, now)) == words


async def test_a_paper_has_one_answer(tmp_path, monkeypatch):
    """It is kept beside the judgments: a second script, and a replay without network, get the same."""
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
            assert "1 script reads the clock: lake" in run.stdout
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
        replay = run_command(
            "--agent_name", "bot", "--llm_provider", "replay", cwd=project.root
        )
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
        """It is not passed over in silence."""
        run = run_command("--agent_name", "bot", "--as_of", "spring", cwd=project.root)
        assert run.returncode == 2
        assert "neither a date such as 2025-03-14 nor 'answer'" in run.stderr

    def test_an_answer_without_a_proper_date_has_no_result(self, project):
        """It is not judged by another date instead."""
        (project.root / "answers/bot/lake/answer_1.meta.json").write_text(
            '{"created": "spring"}'
        )
        with JudgeServer() as server:
            run = self.run(project, server, "--as_of", "answer")
        assert run.returncode == 1
        assert "created 'spring' is no date" in run.stdout


def test_a_file_opened_while_the_process_exits_raises_nothing():
    """By then the recorder's module has lost its names."""
    code = """
import os
import subprocess
import sys
from pathlib import Path
from mind2web2.scripts.input_recorder import InputRecorder, record_inputs

class Late:
    def __init__(self):
        self.open = open

    def __del__(self):
        self.open("/dev/null").close()

record_inputs(InputRecorder(Path("script.py")))
os.late = Late()
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
