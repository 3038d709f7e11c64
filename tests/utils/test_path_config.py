"""Where things are kept, and which version of a script counts."""

from pathlib import Path

import pytest

from mind2web2.errors import UsageError
from mind2web2.utils.path_config import PathConfig


def project(tmp_path, *scripts):
    """Return the paths of a project that has these scripts, given as ``version/task``."""
    for script in scripts:
        path = tmp_path / "eval_scripts" / f"{script}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    return PathConfig(tmp_path)


def test_folders_default_to_the_project_root(tmp_path):
    """The four folders have their published names; the root may be given as text."""
    paths = PathConfig(str(tmp_path))
    assert [
        paths.answers_root,
        paths.eval_scripts_root,
        paths.eval_results_root,
        paths.cache_root,
    ] == [tmp_path / name for name in ("answers", "eval_scripts", "eval_results", "cache")]
    assert paths.eval_version is None


def test_overrides_replace_only_what_is_given(tmp_path):
    paths = PathConfig(tmp_path)
    paths.apply_overrides(
        answers_root="elsewhere", cache_root=tmp_path / "c", eval_version="example"
    )
    assert (paths.answers_root, paths.cache_root) == (Path("elsewhere"), tmp_path / "c")
    assert (paths.eval_scripts_root, paths.eval_version) == (
        tmp_path / "eval_scripts",
        "example",
    )


@pytest.mark.parametrize(
    ("scripts", "expected"),
    [
        (["2025_07_14/t", "2025_10_02/t", "example/t"], "2025_10_02"),
        (["2025_07_14/t", "2025_10_02/other", "example/t"], "2025_07_14"),
        (["2025_10_02/other", "example/t"], "example"),
        (["2025_99_99/t", "2024_01_01/t"], "2024_01_01"),
        (["v10/t", "v9/t"], "v9"),
    ],
)
def test_newest_dated_version_that_has_the_task_wins(tmp_path, scripts, expected):
    """Newest date first, then the undated versions; one without the task is passed over."""
    paths = project(tmp_path, *scripts)
    assert paths.default_script_for("t") == tmp_path / "eval_scripts" / expected / "t.py"
    assert paths.find_script("t").version == expected


def test_a_pinned_version_is_the_only_one_searched(tmp_path):
    """Another version never replaces the pinned one."""
    paths = project(tmp_path, "2025_07_14/t", "2025_10_02/t", "2025_10_02/new")
    paths.apply_overrides(eval_version="2025_07_14")
    assert paths.find_script("t").version == "2025_07_14"
    assert paths.find_script("new") is None
    with pytest.raises(UsageError, match=r"no script for task new .*versions searched: 2025_07_14"):
        paths.default_script_for("new")


def test_a_pinned_version_that_is_missing_names_the_others(tmp_path):
    """The message lists what could have been meant."""
    paths = project(tmp_path, "2025_07_14/t", "example/t").apply_overrides(
        eval_version="2026_01_01"
    )
    with pytest.raises(
        UsageError, match=r"no eval version 2026_01_01 .*Found: 2025_07_14, example"
    ):
        paths.find_script("t")


@pytest.mark.parametrize("scripts", [[], ["__pycache__/t", ".old/t"]])
def test_a_missing_script_says_where_it_was_looked_for(tmp_path, scripts):
    """Hidden and bytecode folders are not versions."""
    with pytest.raises(UsageError, match="no script for task t"):
        project(tmp_path, *scripts).default_script_for("t")


def test_accents_may_be_written_apart_from_their_letters(tmp_path):
    paths = project(tmp_path, "v/caf\u00e9")
    assert paths.default_script_for("cafe\u0301").name == "caf\u00e9.py"


def test_a_folder_named_like_a_script_is_none(tmp_path):
    """A folder is no script even if it is named like one."""
    (tmp_path / "eval_scripts" / "example" / "t.py").mkdir(parents=True)
    assert PathConfig(tmp_path).find_script("t") is None


def test_names_that_leave_the_folder_are_refused(tmp_path):
    paths = project(tmp_path, "example/t")
    with pytest.raises(UsageError, match="task"):
        paths.find_script("../example/t")
    with pytest.raises(UsageError, match="eval version"):
        paths.apply_overrides(eval_version="..")
