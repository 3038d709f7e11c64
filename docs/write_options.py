"""Write parts of pages from the program's declarations: ``make options``."""

from __future__ import annotations

from pathlib import Path

from mind2web2 import plugin
from mind2web2.cli.settings_file import file_settings

FOLDER = Path(__file__).parent


def file_keys() -> str:
    """Return the keys of ``mind2web2.toml``, each with an example."""
    lines = ["| key | for example |", "| --- | --- |"]
    for name, setting in file_settings().items():
        assert setting.in_file is not None
        lines.append(f"| `{name}` | `{setting.in_file.example}` |")
    return "\n".join(lines)


def plugin_names() -> str:
    """Return the names of ``mind2web2.plugin``, by the folder that has them."""
    rooms: dict[str, list[str]] = {}
    for name, home in plugin.HOMES.items():
        rooms.setdefault(home.split(".")[1], []).append(f"`{name}`")
    rows = [f"| `{room}` | {', '.join(sorted(names))} |" for room, names in sorted(rooms.items())]
    return "\n".join(["| folder | names |", "| --- | --- |", *rows])


PARTS = {"options.md": ("keys", file_keys), "plugins.md": ("names", plugin_names)}


def written(name: str) -> str:
    """Return a page with the part between its two comments as the declarations have it."""
    part, lines = PARTS[name]
    page = (FOLDER / name).read_text(encoding="utf-8")
    begin, end = f"<!-- {part}: written by make options -->", f"<!-- end of {part} -->"
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(end)
    assert rest and after, f"{name} lacks the comments of its {part}"
    return f"{before}{begin}\n{lines()}\n{end}{after}"


if __name__ == "__main__":
    for page in PARTS:
        (FOLDER / page).write_text(written(page), encoding="utf-8")
