"""Plugins are found in installed packages and in our own folders."""

import sys

import pytest

from mind2web2.utils import entry_points as found


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Install a plugin with one part that can be loaded and one that cannot."""
    folder = tmp_path / "own_plugin-1.0.dist-info"
    folder.mkdir()
    lines = ["[console_scripts]", "x = y:z", "[mind2web2.exports]"]
    lines += ["good = own_plugin:GOOD", "# a comment = x", "bad = own_plugin:BAD"]
    (folder / "entry_points.txt").write_text("\n".join(lines))
    (tmp_path / "own_plugin.py").write_text("GOOD = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    # Our own plugins have exports as well.
    monkeypatch.setattr(found, "_OWN_PLUGINS", tmp_path / "none")
    found.entry_points.cache_clear()
    found._load.cache_clear()
    yield folder
    found.entry_points.cache_clear()
    sys.modules.pop("own_plugin", None)


@pytest.mark.usefixtures("installed")
def test_an_installed_package_adds_its_parts_to_hooks():
    assert found.hook_names("exports") == ["good", "bad"]
    assert found.load_part("exports", "good") == 1
    assert found.load_part("exports", "unknown") is None


@pytest.mark.usefixtures("installed")
def test_a_part_that_cannot_be_loaded_is_one_warning(caplog):
    for _ in range(2):
        assert found.load_parts("exports") == {"good": 1}
    (record,) = caplog.records
    assert "the plugin own_plugin 1.0 cannot be loaded" in record.getMessage()


def test_our_own_plugins_come_from_their_folders():
    plugins = {part.plugin for part in found.entry_points()}
    assert "telemetry" in plugins


def test_a_deleted_plugin_is_named_by_what_needs_it(tmp_path, monkeypatch):
    monkeypatch.setattr(found, "_OWN_PLUGINS", tmp_path)
    assert found.removed_plugin("--x") is None
    (tmp_path / "names.txt").write_text("own --x x\nother --y\n")
    assert found.removed_plugin("--x") == "own"
    (tmp_path / "own").mkdir()
    assert found.removed_plugin("--x") is None
