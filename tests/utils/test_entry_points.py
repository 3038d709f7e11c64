"""Plugins are entry points of installed packages."""

import sys

import pytest

from mind2web2.utils import entry_points as found


@pytest.fixture
def _installed(tmp_path, monkeypatch):
    """Install a plugin with one part that can be loaded and one that cannot."""
    folder = tmp_path / "own_plugin-1.0.dist-info"
    folder.mkdir()
    lines = ["[mind2web2.exports]", "good = own_plugin:GOOD", "bad = own_plugin:BAD"]
    (folder / "entry_points.txt").write_text("\n".join(lines))
    (folder / "METADATA").write_text("Name: own-plugin\nVersion: 1.0\n")
    (tmp_path / "own_plugin.py").write_text("GOOD = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    found.parts_of.cache_clear()
    found.load_part.cache_clear()
    yield
    found.parts_of.cache_clear()
    found.load_part.cache_clear()
    sys.modules.pop("own_plugin", None)


@pytest.mark.usefixtures("_installed")
def test_an_installed_package_adds_its_parts_to_hooks():
    assert {"good", "bad", "inspect"} <= found.parts_of("exports").keys()
    assert found.load_part("exports", "good") == 1
    assert found.load_part("exports", "unknown") is None


@pytest.mark.usefixtures("_installed")
def test_a_part_that_cannot_be_loaded_is_one_warning(caplog):
    for _ in range(2):
        assert found.load_parts("exports")["good"] == 1
    (record,) = caplog.records
    assert "the plugin part own_plugin:BAD cannot be loaded" in record.getMessage()
