"""A script in a process of its own costs only its own answer, whatever it does.

The reason is one line.
"""

import asyncio
import json
import os
from contextlib import nullcontext
from pathlib import Path

import pytest
from fixtures.process_tree import wait_for_end
from program_order import program_order
from projects import ClaimJudge, Project, evaluate, outcomes_by_name, read_json

from mind2web2.errors import EvalScriptError
from mind2web2.scripts.isolation.run import Isolation
from mind2web2.scripts.limits import ScriptLimits

TIGHT = Isolation(ScriptLimits(block_s=0.5, processor_s=2))
PATIENT = Isolation(ScriptLimits(block_s=60, processor_s=60))


@pytest.fixture
def project(tmp_path):
    """Return a project with an answer on which its script does what a test says, and another."""
    project = Project(tmp_path)
    project.add_answer("answer_1", "The lake is wild.")
    project.add_answer("answer_2")
    return project


async def outcomes_of(project, body, isolation=TIGHT, **options):
    """Return what becomes of the answer that the script does this on, and of the other."""
    lines = [
        "leaf = evaluator.add_leaf('leaf', 'leaf')",
        "await evaluator.verify('The lake is deep.', leaf)",
        "summary = evaluator.get_summary()",
        "if 'wild' in answer:",
        *(f"    {line}" for line in body.splitlines()),
        "return summary",
    ]
    project.add_script_body("\n".join(lines) + "\n")
    outcomes = outcomes_by_name(
        await evaluate(project, ClaimJudge(), isolation=isolation, **options)
    )
    return outcomes["answer_1.md"], outcomes["answer_2.md"]


def log_of(project, stem="answer_1"):
    """Return the text of an answer's log."""
    return "".join(
        path.read_text() for path in sorted((project.folder(stem) / "logs").glob("*.log"))
    )


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            "raise ValueError('no such lake')",
            r"raised ValueError: no such lake \(line \d+\)$",
        ),
        (
            "client.response(model='o9', messages=[])",
            r"raised ValueError: this client is asynchronous: use await "
            r"client\.async_response\(\.\.\.\)"
            r" \(line \d+\)$",
        ),
        ("raise KeyboardInterrupt", r"raised KeyboardInterrupt \(line \d+\)$"),
        ("sys.exit(3)", r"called sys\.exit\(3\)$"),
        (
            "import os\nos._exit(0)",
            r"ended its process without a result \(status 0\): does it call os\._exit",
        ),
        (
            "while True: pass",
            r"was stopped: it blocked all other work for 0\.5 s \(an endless loop",
        ),
        (
            "import select\nselect.select([], [], [], 1000)",
            r"was stopped: it blocked all other work for 0\.5 s",
        ),
        (
            "import threading\n"
            "def spin():\n"
            "    while True: pass\n"
            "threading.Thread(target=spin).start()\n"
            "await asyncio.sleep(1000)",
            r"its process was ended by SIGXCPU, which the system sends after 2 s of processor "
            r"time: an",
        ),
        (
            "def down(n): return down(n + 1)\ndown(0)",
            r"raised RecursionError: .* \(line \d+\)$",
        ),
        (
            "import ctypes\nctypes.string_at(0)",
            r"its process was ended by SIGSEGV, a crash: check the compiled code",
        ),
        (
            "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
            r"its process was ended by SIGKILL, which the system sends where the machine has no "
            r"memory left "
            r"\(try fewer at once: --max_concurrent_answers\); or does it call os\.kill or "
            r"os\.killpg, "
            r"or did another program\?$",
        ),
        (
            "import os\nos.kill(os.getpid(), 15)",
            r"its process was ended by SIGTERM, not by the evaluation",
        ),
        ("summary['more'] = {1, 2}", r"returned what is not JSON: .*set"),
        (
            "import gc, os, pickle\n"
            "from multiprocessing.connection import Connection\n"
            "class Call:\n"
            "    def __reduce__(self): return os.abort, ()\n"
            "[connection] = [each for each in gc.get_objects() if type(each) is Connection]\n"
            "connection.send_bytes(pickle.dumps(Call()))\n"
            "await asyncio.sleep(1000)",
            r"its process sent an invalid message \(UnicodeDecodeError\)",
        ),
    ],
)
async def test_a_script_that_misbehaves_costs_its_own_answer_only(project, body, reason):
    """Each of them with one line that names the script, and the cure as far as there is one."""
    broken, other = await outcomes_of(project, body)
    assert broken.result is None
    with pytest.raises(EvalScriptError, match=rf"^script lake\.py.* ?{reason}"):
        raise EvalScriptError(broken.reason)
    assert "\n" not in broken.reason
    assert (other.score, other.reason) == (1.0, None)


async def test_a_script_that_cannot_be_interrupted_ends_at_its_time_limit(tmp_path):
    project = Project(tmp_path)
    project.add_answer()
    project.add_script_body(
        "import signal\nsignal.signal(signal.SIGALRM, signal.SIG_IGN)\n"
        "import select\nselect.select([], [], [], 1000)\n"
    )
    [outcome] = await evaluate(project, ClaimJudge(), isolation=TIGHT, answer_timeout_s=1)
    assert outcome.reason == "script lake.py did not return within 1 s (--answer_timeout)"


SMALL = Isolation(ScriptLimits(memory_bytes=150 * 1024**2, block_s=20))
# Takes memory piece by piece, and keeps it.
FILLING = "held = []\nwhile len(held) < 300: held.append(b'x' * 2**20)\n"


TOO_MUCH = "script lake.py took more than 150 MB of memory"


@pytest.mark.parametrize(
    ("body", "score", "reason"),
    [
        (f"{FILLING}await asyncio.Event().wait()", None, TOO_MUCH),
        (
            "try:\n"
            "    held = []\n"
            "    while len(held) < 300: held.append(b'x' * 2**20)\n"
            "    await asyncio.Event().wait()\n"
            "except BaseException: pass",
            None,
            TOO_MUCH,
        ),
        (
            "import mmap\nheld = mmap.mmap(-1, 2**30, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)",
            1.0,
            None,
        ),
        (
            "import threading\n"
            "end = threading.Event()\n"
            "for _ in range(300): threading.Thread(target=end.wait, daemon=True).start()\n"
            "end.set()",
            1.0,
            None,
        ),
    ],
    ids=["used", "used, whatever it catches", "reserved", "of threads"],
)
async def test_a_script_that_uses_too_much_memory_has_no_result(project, body, score, reason):
    """Nothing is refused, which it might catch: no score rests on our limit.

    Unused memory does not count.
    """
    broken, other = await outcomes_of(project, body, SMALL)
    assert (broken.score if broken.result else None, broken.reason) == (score, reason)
    assert (other.score, other.reason) == (1.0, None)


async def test_a_file_beyond_all_measure_ends_the_process(project):
    opened = f"file = open({str(project.root / 'large')!r}, 'wb')"
    body = f"{opened}\ntry: file.truncate(2**31)\nexcept OSError: pass"
    broken, _ = await outcomes_of(project, body)
    assert broken.reason == (
        "script lake.py: its process was ended by SIGXFSZ, which the system sends for a file of "
        "more than 1024 MB"
    )


async def test_names_that_cannot_be_written_do_no_harm(project):
    """Half a character in the id of a node or the name of an extraction costs no result."""
    body = (
        "from pydantic import BaseModel\n"
        "class Depth(BaseModel): metres: int | None = None\n"
        "odd = evaluator.add_leaf('odd \\ud800', 'odd')\n"
        "await evaluator.verify('The lake is wide.', odd)\n"
        "await evaluator.extract('How deep?', Depth, 'depth \\ud800')\n"
        "summary = evaluator.get_summary()"
    )
    broken, _ = await outcomes_of(project, body)
    assert (broken.score, broken.reason) == (1.0, None)


@pytest.mark.parametrize(
    "body",
    [
        "import threading\nthreading.Thread(target=time.sleep, args=(1000,)).start()",
        "async def leave(): sys.exit(4)\ntask = asyncio.create_task(leave())\nawait "
        "asyncio.sleep(0.01)",
        "async def leave(): raise KeyboardInterrupt\n"
        "task = asyncio.create_task(leave())\n"
        "await asyncio.sleep(0.01)",
        "import os\nif os.fork() == 0: time.sleep(1000)",
        "import atexit\natexit.register(time.sleep, 1000)",
        "import warnings\nwarnings.warn('odd')",
    ],
    ids=[
        "a thread",
        "a task that exits",
        "a task that interrupts",
        "a fork",
        "an exit handler",
        "a warning",
    ],
)
async def test_what_a_script_leaves_running_does_not_matter(project, body):
    broken, other = await outcomes_of(project, body)
    assert (broken.score, other.score) == (1.0, 1.0), broken.reason


async def test_processes_that_a_script_leaves_running_are_ended(project):
    """A process whose parent is gone is ended too."""
    pids = project.root / "pids"
    broken, other = await outcomes_of(
        project,
        "import os, subprocess\n"
        "child = subprocess.Popen(['sleep', '1000'])\n"
        f"open({str(pids)!r}, 'a').write(f'{{child.pid}} ')\n"
        "command = f'(sleep 1000 & echo $! >> {\"" + str(pids) + "\"})'\n"
        "subprocess.run(['sh', '-c', command], stdout=subprocess.DEVNULL)",
    )
    assert (broken.score, other.score) == (1.0, 1.0), broken.reason
    left = pids.read_text().split()
    assert len(left) == 2
    wait_for_end(left)


async def test_what_a_script_prints_goes_to_its_log(project, capfd):
    """The output of its own processes goes there too; neither our output nor the result suffers."""
    body = (
        "import os, sys\n"
        "print('deep', 'water', end='', flush=False)\n"
        "os.system('echo; echo from a shell')\n"
        "print('odd', file=sys.stderr)"
    )
    broken, _ = await outcomes_of(project, body)
    assert broken.score == 1.0
    assert capfd.readouterr() == ("", "")
    for words in ("deep water", "from a shell", "odd"):
        assert f"script printed: {words}" in log_of(project)


async def test_what_a_script_prints_without_end_is_cut(project):
    """A megabyte is kept, with a note; the log stays readable and the disk free."""
    broken, _ = await outcomes_of(project, "for _ in range(3000): print('x' * 999)", PATIENT)
    assert broken.score == 1.0
    assert "script prints more than 1048576 bytes; the rest is left out" in log_of(project)
    assert len(log_of(project)) < 1.5 * 1024**2


async def test_logs_of_passes_are_those_of_program_order(project):
    body = (
        "logger.warning('%s deep', 'very', extra={'metres': 80})\n"
        "logger.getChild('sub').debug('below')\n"
        "try: 1 / 0\n"
        "except ZeroDivisionError: logger.exception('odd')"
    )
    logged = []
    for where in (program_order, nullcontext):
        with where():
            broken, _ = await outcomes_of(project, body, reuse=False)
        assert broken.score == 1.0
        newest = max(
            (project.folder() / "logs").glob("*.jsonl"),
            key=lambda path: (path.stat().st_mtime, path.name),
        )
        entries = [read_json_line(line) for line in newest.read_text().splitlines()]
        logged.append([entry for entry in entries if "result written" not in entry["message"]])
    # Extras are texts on the way.
    assert [{**entry, "metres": str(entry.get("metres"))} for entry in logged[0]] == [
        {**entry, "metres": str(entry.get("metres"))} for entry in logged[1]
    ]
    assert {entry["logger"] for entry in logged[1]} == {"answer_1", "answer_1.sub"}
    assert any("ZeroDivisionError" in entry.get("exception", "") for entry in logged[1])


def read_json_line(line):
    """Return a line of a log without its time."""
    entry = json.loads(line)
    del entry["time"]
    return entry


async def test_no_secret_is_inherited(project, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    monkeypatch.setenv("MY_TOKEN", "sk-very-secret")
    monkeypatch.setenv("HTTPS_PROXY", "http://me:sk-very-secret@proxy.example")
    body = (
        "import os\n"
        "seen = {'variables': dict(os.environ), 'files': len(os.listdir('/proc/self/fd'))}\n"
        "seen['first'] = open('/proc/self/environ').read() + open('/proc/self/cmdline').read()\n"
        "evaluator.add_custom_info(seen)\n"
        "summary = evaluator.get_summary()"
    )
    secret = project.root / "secret"
    secret.write_text("sk-very-secret")
    with secret.open() as held:
        os.set_inheritable(held.fileno(), True)
        broken, _ = await outcomes_of(project, body)
    assert broken.score == 1.0, broken.reason
    [info] = broken.result.document["eval_breakdown"][0]["info"]
    assert "sk-very-secret" not in str(info)
    assert info["custom"]["variables"]["PATH"] == os.environ["PATH"]
    # Standard streams, the connection, two of the event loop's, its selector, the listing itself.
    assert info["custom"]["files"] <= 8


async def test_what_a_script_changes_stays_in_its_process(project):
    """Modules, settings and the random state are as they were for the next answer."""
    body = (
        "import json, os\njson.separators_seen = True\nos.environ['LEFT'] = 'behind'\nos.chdir('/')"
    )
    broken, _ = await outcomes_of(project, body)
    assert broken.score == 1.0
    seen = "import json, os\nevaluator.add_custom_info({'seen': [hasattr(json, 'separators_seen'), "
    seen += "os.environ.get('LEFT'), os.getcwd()]})\nsummary = evaluator.get_summary()"
    later, _ = await outcomes_of(project, seen, reuse=False)
    assert later.result.document["eval_breakdown"][0]["info"] == [
        {"custom": {"seen": [False, None, str(Path.cwd())]}}
    ]


async def test_a_result_of_any_size_is_bounded(project):
    """A message that is too long is refused where it is made."""
    broken, other = await outcomes_of(
        project, "summary['more'] = 'x' * 2**26", Isolation(ScriptLimits(block_s=30))
    )
    assert broken.reason.startswith("script lake.py returned an unusable result: a message of 67")
    assert other.score == 1.0


async def test_the_results_file_is_the_same(project):
    broken, _ = await outcomes_of(project, "pass")
    [path] = project.result_paths()
    assert read_json(path) == broken.result.document


async def test_a_run_that_is_stopped_ends_its_scripts(project):
    pid_file, is_asked = project.root / "pid", asyncio.Event()

    async def never(_claim):
        is_asked.set()
        await asyncio.Event().wait()

    project.add_script_body(
        f"import os\nopen({str(pid_file)!r}, 'a').write(f'{{os.getpid()}} ')\n"
        "await evaluator.verify('The lake is deep.', evaluator.add_leaf('leaf', 'leaf'))"
    )
    running = asyncio.create_task(evaluate(project, ClaimJudge(never), isolation=TIGHT))
    await is_asked.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    wait_for_end(pid_file.read_text().split())
