"""``evaluate --shard`` on several machines, and ``mind2web2 import results`` of their results."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from projects import Project, call, claim_in, clean_environment, read_json, run_command
from servers.judge_server import JudgeServer, prompt_text

from mind2web2.cli import main
from mind2web2.judge.store import STORE_NAME, JudgmentStore
from mind2web2.results.result_file import with_checksum
from mind2web2.results.shards import Shard

SHARDS = ("1/3", "2/3", "3/3")
CLAIMS = {"deep": ("The lake is deep.", None), "flat": ("The lake is flat.", None)}


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    """Return a folder with the results of one whole run, and of its shards."""
    root = tmp_path_factory.mktemp("machines")
    project = Project(root)
    for task in ("dam", "weir"):
        project.add_script(CLAIMS if task == "dam" else {"deep": CLAIMS["deep"]}, task)
        for number in (1, 2, 3):
            project.add_answer(f"answer_{number}", f"Deep, says {task} {number}.", task)
    (root / "answers/bot/weir/answer_2.md").write_bytes(b"\xff")
    project.add_answer("answer_3", "", "weir")
    with JudgeServer(
        lambda body: {
            "reasoning": "read",
            "result": "deep" in claim_in(prompt_text(body)),
        }
    ) as judge:
        options = [
            "--agent_name",
            "bot",
            "--judge_base_url",
            judge.base_url,
            "--no_capture",
        ]
        for name in ("whole", *SHARDS):
            own = ["--eval_results_root", f"{name[0]}/eval_results"]
            shard = [] if name == "whole" else ["--shard", name]
            run = run_command(*options, *own, *shard, cwd=root)
            assert run.stderr == ""
    return root


@pytest.fixture
def machines(evaluated, tmp_path, monkeypatch):
    """Stand beside the results of three shards, ``1/`` to ``3/``, and of the whole run, ``w/``."""
    for name in "123w":
        shutil.copytree(evaluated / name, tmp_path / name)
    shutil.copytree(evaluated / "answers", tmp_path / "answers")
    shutil.copytree(evaluated / "eval_scripts", tmp_path / "eval_scripts")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


def merge(*names, into="all"):
    """Merge the results of machines."""
    return call(
        main, "import", "results", *(f"{name}/eval_results" for name in names), "--into", into
    )


def files(folder):
    """Return the content of all files below a folder."""
    return {
        str(path): path.read_bytes() for path in sorted(Path(folder).rglob("*")) if path.is_file()
    }


def metrics(root):
    """Return the metrics of the agent."""
    return json.loads(call(main, "metrics", "bot", "--eval_results_root", root, "--json").stdout)


def stored(root):
    """Return the keys of the stored judgments."""
    with JudgmentStore(Path(root, "bot", STORE_NAME)) as store:
        return [judgment.key for judgment in store.all()]


def result_names(root):
    """Return the answer of each result file, once for each file."""
    return sorted(
        str(path.parent.parent.relative_to(root)) for path in Path(root).rglob("*.md.json")
    )


def test_merged_shards_equal_one_whole_run(machines):
    """Metrics, judgments and costs agree; the sources stay, and a second merge is idle."""
    before = files("1") | files("2") | files("3")
    run = merge(1, 2, 3)
    assert (run.returncode, run.stderr) == (0, "")
    assert "0 conflicts" in run.stdout
    assert metrics("all") == metrics("w/eval_results")
    assert result_names("all") == result_names("w/eval_results")
    assert sorted(stored("all")) == sorted(stored("w/eval_results"))
    usage = read_json(machines / "all/bot/usage.json")["runs"]
    [whole] = read_json(machines / "w/eval_results/bot/usage.json")["runs"]
    assert sorted(each["shard"] for each in usage) == list(SHARDS)
    assert sum(each["asked"]["judgments"] for each in usage) == whole["asked"]["judgments"]
    assert files("1") | files("2") | files("3") == before
    merged = files("all")
    assert merge(1, 2, 3).returncode == 0
    assert {name for name, content in files("all").items() if content != merged.get(name)} <= {
        f"all/bot/{STORE_NAME}"
    }
    assert sorted(stored("all")) == sorted(stored("w/eval_results"))


def test_a_part_does_not_look_like_a_whole(machines):
    """A warning names the shard until all have ended; a run over all answers ends it as well."""
    [warning, *_] = metrics("1/eval_results")["warnings"]
    assert warning.startswith("these are figures of a part only: results of shard 1/3; ")
    shown = call(main, "metrics", "bot", "--eval_results_root", "1/eval_results").stdout
    assert ("part only" in shown, "never evaluated" in shown) == (True, False)
    run = merge(1, 3)
    assert "Warning: these are figures of a part only: results of shard 1/3, 3/3; " in run.stdout
    path = machines / "2/eval_results/bot/shards.json"
    path.write_text(path.read_text().replace("ended", "started"))
    merge(2)
    assert "of which these have not ended: 2/3" in metrics("all")["warnings"][0]
    entry = call(main, "compare", "w/eval_results/bot", "1/eval_results/bot")
    assert "1/eval_results/bot: these are figures of a part only" in entry.stdout
    assert "part only" not in " ".join(metrics("w/eval_results")["warnings"])


def test_shards_in_one_folder_divide_the_work(evaluated):
    """Each answer is in one shard, which leaves the others alone; some tasks end none."""
    with JudgeServer({"reasoning": "read", "result": True}) as judge:
        options = [
            "--agent_name",
            "bot",
            "--judge_base_url",
            judge.base_url,
            "--no_capture",
        ]
        for name in SHARDS:
            run = run_command(
                *options, "--shard", name, "--eval_results_root", "one", cwd=evaluated
            )
            assert f"Shard {name}: " in run.stdout
        for root, state in (("one", "ended"), ("few", "started")):
            few = ("--shard", "1/3", "--task_id", "dam", "--eval_results_root", root)
            run_command(*options, *few, cwd=evaluated)
            assert read_json(evaluated / root / "bot/shards.json")["shards"]["1/3"] == state
        empty = run_command(
            *options, "--shard", "99/1000", "--eval_results_root", "none", cwd=evaluated
        )
    assert (empty.returncode, empty.stdout) == (
        0,
        "Shard 99/1000 has no answers: there is nothing to judge.\n",
    )
    found = read_json(evaluated / "one/bot/summary.json")
    assert {task: len(own["answers"]) for task, own in found["tasks"].items()} == {
        "dam": 3,
        "weir": 2,
    }
    assert [each["answer_name"] for each in found["missing"] if "UTF-8" in each["reason"]] == [
        "answer_2.md"
    ]
    assert not any("part only" in text for text in found["warnings"])


def test_the_hash_is_the_same_everywhere():
    places = [("dam", f"answer_{number}.md") for number in range(1, 6)]
    assert [next(k for k in (1, 2, 3) if Shard(k, 3).holds(*place)) for place in places] == [
        3,
        2,
        1,
        2,
        3,
    ]


def changed(path, **fields):
    """Replace fields of a result."""
    content = read_json(path)
    del content["run"]["content_sha256"]
    path.write_text(json.dumps(with_checksum(content | fields)))


def test_different_results_of_one_answer_are_a_conflict(machines):
    shutil.copytree("w/eval_results", "other/eval_results")
    [path] = (machines / "other/eval_results/bot/dam/answer_1/results").iterdir()
    changed(path, final_score=0.25, time_seconds=9.0)
    run = merge("w", "other")
    assert run.returncode == 1
    [conflict] = [text for text in run.stdout.splitlines() if text.startswith("Conflict: ")]
    assert conflict.startswith(
        "Conflict: bot/dam/answer_1: two different results: 0.50 in all/bot/dam/answer_1/results"
    )
    assert "0.25 in other/eval_results/bot/dam/answer_1/results" in conflict
    assert metrics("all")["tasks"] == metrics("w/eval_results")["tasks"]
    newer = machines / "w/eval_results/bot/dam/answer_1/results/29990101_000000_answer_1.md.json"
    shutil.copy(path, newer)
    assert merge("w").returncode == 0
    assert metrics("all")["tasks"]["dam"]["answers"][0]["score"] == 0.25
    assert merge("w").returncode == 0


def test_other_judges_and_scripts_are_conflicts(machines):
    """Between answers as well."""
    for path in (machines / "2/eval_results").rglob("*.md.json"):
        content = read_json(path)
        content["judge_model"] = content["provenance"]["judge"]["model"] = "other-judge"
        content["provenance"]["script_sha256"] = "0" * 64
        del content["run"]["content_sha256"]
        path.write_text(json.dumps(with_checksum(content)))
    run = merge(1, 2, 3)
    assert run.returncode == 1
    assert "Conflict: bot: scores of different judges or votes: o4-mini, other-judge" in run.stdout
    assert "judged by different versions of its script" in run.stdout
    with JudgmentStore(machines / "2/eval_results/bot" / STORE_NAME) as store:
        judgments = [each.model_copy(update={"text": "other"}) for each in store.all()]
    (machines / "2/eval_results/bot" / STORE_NAME).unlink()
    with JudgmentStore(machines / "2/eval_results/bot" / STORE_NAME) as store:
        store.add(judgments)
    assert "has other replies of the judge to the same requests, of " in merge(2).stdout


def test_merging_an_older_copy_of_a_part_again_changes_nothing(machines):
    """A part that has ended stays so, although a copy from when it was running is merged later."""
    merge(1, 2, 3)
    ended = (machines / "all/bot/shards.json").read_text(encoding="utf-8")
    assert set(json.loads(ended)["shards"].values()) == {"ended"}
    running = json.dumps({"shards": {"2/3": "started"}})
    (machines / "2/eval_results/bot/shards.json").write_text(running, encoding="utf-8")
    assert merge(2).returncode == 0
    assert (machines / "all/bot/shards.json").read_text(encoding="utf-8") == ended


def test_a_killed_merge_continues(machines):
    """Nothing is lost or doubled, and until then the folder counts as a part."""
    [path] = (machines / "1").rglob("dam/*/results/*.md.json")
    for second in range(100):
        shutil.copy(path, path.with_name(f"20010101_{second:06}_answer_3.md.json"))
    words = [
        sys.executable,
        "-m",
        "mind2web2",
        "import",
        "results",
        "1/eval_results",
        "2/eval_results",
        "--into",
        "all",
    ]
    process = subprocess.Popen(words, env=clean_environment())
    while len(list(machines.glob("all/bot/dam/*/results/*.md.json"))) < 5:
        assert process.poll() is None
    process.kill()
    process.wait()
    assert read_json(machines / "all/bot/shards.json") == {"shards": {"1/3": "started"}}
    run = merge(1, 2, 3)
    assert (run.returncode, run.stderr) == (0, "")
    assert metrics("all") == metrics("w/eval_results")
    assert len(result_names("all")) == len(result_names("w/eval_results")) + 100
    assert len(stored("all")) == len(set(stored("all"))) == len(stored("w/eval_results"))


LINKED = {
    "a file": "dam/answer_1/logs/notes.txt",
    "a folder of logs": "dam/answer_1/logs",
    "an answer": "dam/answer_4",
    "a task": "pond",
}


@pytest.mark.parametrize("name", LINKED)
def test_no_link_of_a_machine_is_followed(machines, name):
    """A link could lead to any file of this machine; what is left out is named."""
    private = machines / "private"
    shutil.copytree(machines / "w/eval_results/bot/dam/answer_2", private / "answer_2")
    (private / "notes.txt").write_text("the key of this machine")
    link = machines / "w/eval_results/bot" / LINKED[name]
    if link.is_dir():
        shutil.rmtree(link)
    link.parent.mkdir(parents=True, exist_ok=True)
    target = {"a file": private / "notes.txt", "an answer": private / "answer_2"}
    link.symlink_to(target.get(name, private))
    run = merge("w")
    assert (
        f"links are not followed, and left out: w/eval_results/bot/{LINKED[name]}"
        in run.stdout + run.stderr
    )
    assert not [path for path in Path("all").rglob("*") if path.name == "notes.txt"]
    assert not (Path("all/bot") / LINKED[name]).exists() or name == "a folder of logs"


def test_a_damaged_store_of_a_machine_is_named(machines):
    (machines / "2" / "eval_results" / "bot" / STORE_NAME).write_bytes(b"damaged" * 1000)
    run = merge("1", "2")
    assert (run.returncode, run.stderr.count("\n")) == (2, 1)
    assert f"2/eval_results/bot/{STORE_NAME} cannot be used" in run.stderr
    assert "with --judgments" not in run.stderr and "move the file away" in run.stderr


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (
            ("import", "results", "nothing", "--into", "all"),
            "there are no results in nothing: name a folder such as",
        ),
        (
            ("import", "results", "w/eval_results", "--into", "w/eval_results"),
            "is also the folder to merge into",
        ),
        (
            ("import", "results", "w/eval_results/bot", "--into", "all"),
            "is the folder of one agent: name the one above",
        ),
        (("evaluate", "bot", "--shard", "4/3"), "'4/3' is not a shard such as 3/20"),
        (("evaluate", "bot", "--shard", "0/3"), "'0/3' is not a shard such as 3/20"),
    ],
)
@pytest.mark.usefixtures("machines")
def test_a_wrong_command_merges_nothing(words, problem):
    run = call(main, *words)
    assert (run.returncode, run.stderr.count("\n")) == (2, 1)
    assert problem in run.stderr
    assert not Path("all").exists()


@pytest.mark.parametrize(
    ("damaged", "states"),
    [
        ("w/eval_results", ("damaged", "0.50")),
        ("other/eval_results", ("0.50", "damaged")),
    ],
)
def test_a_damaged_result_beside_a_sound_one_is_named(machines, damaged, states):
    shutil.copytree("w/eval_results", "other/eval_results")
    [path] = (machines / damaged / "bot/dam/answer_1/results").iterdir()
    path.write_text("{")
    run = merge("w", "other")
    assert run.returncode == 1
    folder = "bot/dam/answer_1/results"
    assert (
        f"two different results: {states[0]} in all/{folder}, {states[1]} in "
        f"other/eval_results/{folder};" in run.stdout
    )
