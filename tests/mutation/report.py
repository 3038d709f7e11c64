"""Change one place at a time in modules that decide scores; count what tests notice.

PYTHONPATH=tests python -m mutation.report [PART ...] [--all]

``parts.toml`` names modules and the tests that concern them. mutmut makes the changes; of each a
sample is tried, the same each time. Each change that no test notices is shown. A change whose tests
take too long counts only if they do so twice, as a busy machine is slow at times. Changes that
change nothing are listed in ``equal.toml`` with the reason, and do not count. The end status is 1
if a part has less than 85%.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from projects import REPOSITORY

HERE = Path(__file__).parent
PACKAGE = "mind2web2"
WORK = REPOSITORY / "build" / "mutants"
LEAST_SHARE = 0.85
SAMPLE = 40
# The copy for tests has the rest of the repository.
LEFT_OUT = {"build", "mutants", ".git", ".venv", "pyproject.toml"}
# mutmut says so after it has made the changes and noted which test calls which function.
NO_SUCH_CHANGE = "Filtered for specific mutants, but nothing matches"
NOTICED, SURVIVED, TIMED_OUT, EQUAL = (
    "noticed",
    "not noticed",
    "timed out twice",
    "equal",
)


@dataclass(frozen=True)
class Part:
    """Modules, and the tests that concern them; both relative to the repository.

    Args:
        without: tests that are left out.
    """

    name: str
    modules: Sequence[Path]
    tests: Sequence[Path]
    without: Sequence[str]


@dataclass(frozen=True)
class Equal:
    """Changes of a line that change nothing that anyone could see.

    Args:
        function: where the line is; ``None`` for anywhere.
        was: the line; ``becomes`` is the changed one.
        pattern: in place of both: the change lies within what it finds.
    """

    function: str | None
    was: str
    becomes: str
    pattern: str | None = None

    def covers(self, change: Change) -> bool:
        """Tell whether this is the change."""
        if self.pattern is not None:
            lines = (change.was, change.becomes)
            was, becomes = (re.sub(self.pattern, "", line) for line in lines)
            return was == becomes
        given = self.function, self.was, self.becomes
        return given == (change.function, change.was, change.becomes)


@dataclass(frozen=True)
class Change:
    """A change that mutmut made.

    Args:
        name: mutmut's, such as ``mind2web2.statistics.paired.x_share__mutmut_3``.
        status: mutmut's, such as ``killed``.
        was: the line; ``becomes`` is the changed one. Both are read for changes that no test
            noticed.
    """

    name: str
    status: str
    was: str = ""
    becomes: str = ""

    @property
    def module(self) -> str:
        """Return the module's name."""
        return self.name.rpartition(".")[0]

    @property
    def function(self) -> str:
        """Return the function's name, after the class's where it is a method."""
        # mutmut writes x_share__mutmut_3, and xǁBudgetǁenter__mutmut_3 for a method.
        function = self.name.rpartition(".")[2].partition("__mutmut_")[0]
        named = function[1:].strip("ǁ").replace("ǁ", ".")
        return f"{self.module}.{named.removeprefix('_') if function.startswith('x_') else named}"


def parts() -> list[Part]:
    """Return the parts that ``parts.toml`` names.

    Raises:
        SystemExit: a module or test of it does not exist.
    """
    listed = tomllib.loads((HERE / "parts.toml").read_text())
    return [
        Part(
            name,
            _found(REPOSITORY / PACKAGE, part["modules"]),
            _found(REPOSITORY / "tests", part["tests"]),
            part.get("without", ()),
        )
        for name, part in listed.items()
    ]


def _found(folder: Path, patterns: Iterable[str]) -> list[Path]:
    found: list[Path] = []
    for pattern in patterns:
        paths = sorted(folder.glob(pattern))
        if not paths:
            raise SystemExit(f"parts.toml: there is no {folder.name}/{pattern}")
        found += [path.relative_to(REPOSITORY) for path in paths]
    return found


def equal_changes() -> list[Equal]:
    """Return the changes of ``equal.toml``."""
    listed = tomllib.loads((HERE / "equal.toml").read_text())
    patterns = [each["pattern"] for each in listed.pop("everywhere")]
    named = [
        Equal(function, change["was"], change["becomes"])
        for function, changes in listed.items()
        for change in changes
    ]
    return [*named, *(Equal(None, "", "", pattern) for pattern in patterns)]


def laid_out(part: Part) -> Path:
    """Return a folder that is the repository, with the settings of mutmut for a part."""
    folder = WORK / part.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for path in REPOSITORY.iterdir():
        if path.name not in LEFT_OUT:
            (folder / path.name).symlink_to(path)
    settings = {
        "source_paths": [PACKAGE],
        "only_mutate": [str(module) for module in part.modules],
        "pytest_add_cli_args": [f"--deselect=tests/{test}" for test in part.without],
        "pytest_add_cli_args_test_selection": [str(test) for test in part.tests],
        "use_git_change_detection": False,
        # Beside the time that the tests took without a change.
        "timeout_constant": 15.0,
        "timeout_multiplier": 4.0,
    }
    lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    project = (REPOSITORY / "pyproject.toml").read_text()
    (folder / "pyproject.toml").write_text("\n".join([project, "[tool.mutmut]", *lines, ""]))
    return folder


def mutmut(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run mutmut in a folder."""
    command = [Path(sys.executable).parent / "mutmut", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def tried(folder: Path, names: Sequence[str]) -> None:
    """Have mutmut try these changes, or only make all changes if there are none.

    Raises:
        SystemExit: it cannot, as where a test fails without a change.
    """
    done = mutmut(folder, "run", *(names or ["nothing is called so"]))
    if done.returncode and not (not names and NO_SUCH_CHANGE in done.stdout + done.stderr):
        raise SystemExit(f"mutmut failed in {folder}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")


def statuses(folder: Path) -> dict[str, str]:
    """Return mutmut's word for each change."""
    lines = mutmut(folder, "results", "--all", "true").stdout.splitlines()
    pairs = (line.strip().rpartition(": ") for line in lines if "__mutmut_" in line)
    return {name: status for name, _, status in pairs}


def sampled(names: Iterable[str], most: int | None) -> list[str]:
    """Return so many changes of each module, the same each time; ``None`` for all."""
    of_module: dict[str, list[str]] = {}
    for name in sorted(names):
        of_module.setdefault(name.rpartition(".")[0], []).append(name)
    if most is None:
        return [name for listed in of_module.values() for name in listed]
    return [
        name
        for module, listed in of_module.items()
        for name in random.Random(module).sample(listed, min(most, len(listed)))
    ]


def changed_lines(difference: str) -> tuple[str, str]:
    """Return the first line that a difference removes, and the first that it adds."""
    lines = [line for line in difference.splitlines() if not re.match(r"(---|\+\+\+) ", line)]
    removed = [line[1:].strip() for line in lines if line.startswith("-")]
    added = [line[1:].strip() for line in lines if line.startswith("+")]
    return (removed or [""])[0], (added or [""])[0]


def outcomes(part: Part, most: int | None) -> list[Change]:
    """Return the changes of a part that were tried."""
    folder = laid_out(part)
    tried(folder, ())
    names = sampled(statuses(folder), most)
    tried(folder, names)
    found = statuses(folder)
    if late := [name for name in names if found[name] == "timeout"]:
        tried(folder, late)
        found = statuses(folder)
    changes = []
    for name in names:
        lines = ("", "")
        if found[name] != "killed":
            lines = changed_lines(mutmut(folder, "show", name).stdout)
        changes.append(Change(name, found[name], *lines))
    return changes


def outcome(change: Change, equal: Sequence[Equal]) -> str:
    """Return what a change counts as."""
    if change.status == "killed":
        return NOTICED
    if change.status == "timeout":
        return TIMED_OUT
    return EQUAL if any(each.covers(change) for each in equal) else SURVIVED


def line(title: str, counts: Mapping[str, int]) -> str:
    """Return a line of the table."""
    counted = sum(counts.values()) - counts[EQUAL]
    return (
        f"{title:<40} {share(counts):6.1%} of {counted:4} noticed"
        f" ({counts[TIMED_OUT]} by time-outs), {counts[EQUAL]} equal\n"
    )


def share(counts: Mapping[str, int]) -> float:
    """Return the share of the changes that were noticed, 1 if there are none."""
    noticed = counts[NOTICED] + counts[TIMED_OUT]
    counted = noticed + counts[SURVIVED]
    return noticed / counted if counted else 1.0


def report(part: Part, most: int | None, equal: Sequence[Equal]) -> bool:
    """Try a part's changes and print what came out; tell whether enough were noticed."""
    by_module: dict[str, Counter[str]] = {}
    for change in outcomes(part, most):
        counted_as = outcome(change, equal)
        by_module.setdefault(change.module, Counter())[counted_as] += 1
        if counted_as in (SURVIVED, TIMED_OUT):
            sys.stdout.write(
                f"{change.status}: {change.name}\n  - {change.was}\n  + {change.becomes}\n"
            )
    for module, counts in by_module.items():
        sys.stdout.write(line(f"  {module}", counts))
    total = sum(by_module.values(), Counter())
    sys.stdout.write(line(part.name, total))
    sys.stdout.flush()
    return share(total) >= LEAST_SHARE


def main() -> int:
    """Report the parts that are named, or all; return 1 if tests notice too little."""
    known = {part.name: part for part in parts()}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(known)}")
    parser.add_argument("--all", action="store_true", help="try all changes, not a sample")
    parser.add_argument("--sample", type=int, default=SAMPLE, help="of each module")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(known):
        parser.error(f"no part is called {', '.join(sorted(unknown))}")
    equal = equal_changes()
    # The changes are in a copy of the package, which processes that tests start have to find as
    # well.
    os.environ.pop("PYTHONPATH", None)
    most = None if options.all else options.sample
    enough = [
        report(part, most, equal)
        for name, part in known.items()
        if not options.parts or name in options.parts
    ]
    return int(not all(enough))


if __name__ == "__main__":
    sys.exit(main())
