"""``mind2web2 get`` and ``mind2web2 rehearse``, against a server that speaks the hub's protocol."""

import subprocess
import sys

import pytest
from projects import call, clean_environment
from servers.hub_server import COMMIT, HubServer
from servers.local_http import Answer

from mind2web2.cli import main

SCRIPT = (
    'TASK_ID = "{0}"\nTASK_DESCRIPTION = """\nWho built {0}?\n"""\n\n\n'
    "async def evaluate_answer(): ...\n"
)
FILES = {
    "README.md": b"about",
    "dev_set.csv": b"task_id,domain,subdomain\nlake,Travel,Water\n",
    "test_set.csv": b"task_id,domain,subdomain,task_description\nmill,Travel,Land,Where is the "
    b"mill?\n",
    "evaluation_scripts/2025_07_14/lake.py": SCRIPT.format("lake").encode(),
    "evaluation_scripts/2025_07_14/mill.py": SCRIPT.format("mill").encode(),
    "evaluation_scripts/../../outside.py": b"no",
}
WANTED = [name for name in FILES if name.endswith(".csv") or "2025" in name]


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """Stand in an empty folder, beside a hub that knows the token."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    for name in ("HF_TOKEN_PATH",):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_TOKEN", "hf_good")
    with HubServer(FILES, large=("test_set.csv",)) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        yield server


def local(name):
    """Return where a file of the dataset lands."""
    return name.replace("evaluation_scripts", "eval_scripts") if "/" in name else f"tasks/{name}"


def test_tasks_and_scripts_land_in_their_folders(hub, tmp_path):
    run = call(main, "get")
    assert (run.returncode, run.stderr) == (0, "")
    assert (
        f"at {COMMIT}: dev_set.csv, test_set.csv and 2 eval scripts, 4 files written now"
        in run.stdout
    )
    for name in WANTED:
        assert (tmp_path / local(name)).read_bytes() == FILES[name]
    assert sorted(hub.fetched()) == sorted(WANTED)
    assert "0 files written now" in call(main, "get").stdout


def test_the_stored_login_is_used(hub, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home/token").write_text("hf_good\n")
    environment = clean_environment(HF_ENDPOINT=hub.url, HF_HOME=str(tmp_path / "home"))
    words = [sys.executable, "-m", "mind2web2", "get"]
    assert subprocess.run(words, cwd=tmp_path, env=environment, check=False).returncode == 0


@pytest.mark.parametrize(
    ("token", "status", "page"),
    [
        ("", "HTTP 401", "/settings/tokens"),
        ("hf_other", "HTTP 403", "/datasets/osunlp/Mind2Web-2"),
    ],
)
def test_refused_access_names_the_page(hub, monkeypatch, token, status, page):
    monkeypatch.setenv("HF_TOKEN", token)
    run = call(main, "get")
    assert run.returncode == 2
    assert status in run.stderr
    assert f"{hub.url}{page}" in run.stderr
    assert run.stderr.count("\n") == 1


def test_a_download_that_fails_stores_nothing(hub, tmp_path):
    """A server that is down, and one that sends less than it announces."""
    for answer in (Answer(status=500), Answer(b"cut")):
        hub.override = lambda request, answer=answer: (
            answer if request.path.endswith("/cdn/dev_set.csv") else None
        )
        run = call(main, "get")
        assert (run.returncode, run.stderr.count("\n")) == (2, 1), run.stderr
        assert "Nothing was replaced" in run.stderr
        assert not (tmp_path / "tasks/dev_set.csv").exists()


@pytest.mark.usefixtures("hub")
def test_changed_files_are_kept(tmp_path):
    call(main, "get")
    mine = tmp_path / "eval_scripts/2025_07_14/lake.py"
    mine.write_text("mine")
    run = call(main, "get")
    assert run.returncode == 2
    assert "lake.py differ from osunlp/Mind2Web-2" in run.stderr
    assert mine.read_text() == "mine"
    assert call(main, "get", "--overwrite").returncode == 0
    assert mine.read_bytes() == FILES["evaluation_scripts/2025_07_14/lake.py"]


@pytest.mark.usefixtures("hub")
def test_tasks_are_listed():
    call(main, "get")
    run = call(main, "rehearse", "--no_run")
    unseen = "its text shows nothing: rehearse it without --no_run"
    assert run.stdout.splitlines() == [
        "task  verdict      question  findings; the worst",
        f"lake  cannot tell  Who built lake?  {unseen}",
        f"mill  cannot tell  Where is the mill?  {unseen}",
        "2 tasks: 2 cannot tell",
    ]


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        (
            "a.csv",
            "id,domain\nx,y\n",
            "a.csv, line 1: no column task_id: the columns, separated by commas, are id, domain",
        ),
        ("a.csv", "task_id\nx\ny\nx\n", "a.csv, line 4: task x is also in line 2"),
        ("a.csv", "task_id\nx,y\n", "a.csv, line 2: more fields than columns"),
        ("a.csv", "task_id\n../x\n", "a.csv, line 2: task '../x' begins with a dot"),
        (
            "a.csv",
            "task_id\n" + "x" * 2_000_000,
            "a.csv, line 2: field larger than field limit",
        ),
        ("a.txt", "x\nx\n", "a.txt, line 2: task x is also in line 1"),
        ("a.txt", "# nothing\n", "names no task"),
        ("a.txt", b"\xff", "not UTF-8"),
    ],
)
def test_a_bad_task_list_is_named_with_its_line(tmp_path, monkeypatch, name, content, problem):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    run = call(main, "validate", "bot", "--task_list", name)
    assert run.returncode == 2
    assert problem in run.stderr
    assert run.stderr.count("\n") == 1


def test_a_dataset_of_another_layout_is_refused(hub):
    for name in [name for name in hub.files if name.endswith(".py")]:
        del hub.files[name]
    run = call(main, "get")
    assert run.returncode == 2
    assert "has other files than <name>.csv and evaluation_scripts/" in run.stderr


def test_a_token_that_the_hub_does_not_know_is_named(tmp_path, monkeypatch):
    """A new token in the login does not help while the variable has the wrong one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_TOKEN", "hf_old")
    with HubServer(FILES, override=lambda _: Answer(status=401)) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        run = call(main, "get")
    assert run.returncode == 2
    assert "(HTTP 401): check HF_TOKEN or the login of hf" in run.stderr
