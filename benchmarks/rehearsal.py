"""Seconds that a rehearsal of 130 tasks of 60 leaves takes.

    PYTHONPATH=tests uv run python benchmarks/rehearsal.py [TASKS]

The tasks are rubric files: a list of ten items with six leaves each, four of them on a page. The
target is 30 s of CPU.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TASK = """\
task: task_{task}
question: Which ten walks in district {task} are short and free of steps? Link a page for each.
extract:
  walks:
    ask: the walks that the answer recommends
    list: 10
    fields:
      name: its name
      length: its length with the unit
      start: where it starts
      waymark: what its waymark looks like
      urls: the addresses that the answer cites for it
root:
  children:
    - id: walk_{{number}}
      desc: Walk {{number}} fits
      for_each: walks
      children:
        - {{id: "walk_{{number}}_named", desc: a, critical: true, present: [item.name, item.urls]}}
        - {{id: "walk_{{number}}_new", desc: b, critical: true, distinct: item.name}}
        - id: walk_{{number}}_short
          desc: c
          critical: true
          claim: "{{item.name}} is short."
          sources: item.urls
        - id: walk_{{number}}_length
          desc: d
          claim: "{{item.name}} is {{item.length}} long."
          sources: item.urls
        - id: walk_{{number}}_start
          desc: e
          claim: "{{item.name}} starts at {{item.start}}."
          sources: item.urls
        - id: walk_{{number}}_mark
          desc: f
          claim: "{{item.name}} has {{item.waymark}}."
          sources: item.urls
"""


def main(tasks: int = 130) -> int:
    """Rehearse the tasks by the command, print the seconds, and return the status."""
    with tempfile.TemporaryDirectory() as folder:
        scripts = Path(folder, "eval_scripts", "own")
        scripts.mkdir(parents=True)
        for task in range(tasks):
            (scripts / f"task_{task}.yaml").write_text(TASK.format(task=task), encoding="utf-8")
        started_s = time.perf_counter()
        command = [sys.executable, "-m", "mind2web2", "rehearse", "--strict"]
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - started_s
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
    sys.stdout.write(run.stdout.splitlines()[-1] + "\n" if run.stdout else run.stderr)
    sys.stdout.write(
        f"{tasks} tasks of 60 leaves: {seconds:.1f} s, {used.ru_utime + used.ru_stime:.1f} s of "
        "CPU, "
        f"{os.cpu_count()} cores with a load of {os.getloadavg()[0]:.1f}\n"
    )
    return run.returncode


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:2])))
