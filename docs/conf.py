"""How Sphinx builds the site from these pages: ``make docs``."""

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from mind2web2 import __version__

project = "Mind2Web-2"
author = "The Mind2Web-2 toolkit authors"
project_copyright = f"{author}, MIT licence"
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_llm_friendly",
]
exclude_patterns = ["_build"]
nitpicky = False

# The pages are also read on GitHub: headings have its anchors.
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
myst_url_schemes = ["http", "https", "mailto"]

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
# Fields of frozen dataclasses stand in the class's signature.
autodoc_default_options = {"members": True, "undoc-members": False}

html_theme = "furo"
html_title = "Mind2Web-2"
html_theme_options = {"navigation_with_keys": True}
copybutton_prompt_text = "$ "

llm_friendly_llms_txt_toctree_only = True


def setup(app: Sphinx) -> None:
    """Adapt pages to the site, and the theme to readers of screens."""
    app.connect("build-finished", _add_example_report)
    app.connect("source-read", _name_files_of_the_repository)
    app.connect("source-read", _index_words_of_readers)
    # After the theme, which writes the navigation when it is asked for the page's context.
    app.connect("html-page-context", _level_captions, priority=900)


def _add_example_report(app: Sphinx, error: Exception | None) -> None:
    """Evaluate the example and put its report beside the pages that link to it."""
    if error is not None or app.builder.name != "html":
        return
    report = Path(app.outdir) / "example-report.html"
    command = [sys.executable, "-m", "mind2web2"]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([*command, "example"], cwd=folder, check=True, capture_output=True)
        subprocess.run(
            [
                *command,
                "report",
                "example",
                "-o",
                str(report),
                "--title",
                "The example",
            ],
            cwd=Path(folder) / "example",
            check=True,
            capture_output=True,
        )


def _name_files_of_the_repository(*event: Any) -> None:
    """Write links out of this folder, which work in the repository alone, as names of files."""
    _, page, source = event
    up = "../" * (page.count("/") + 1)
    source[0] = re.sub(rf"\[([^\]]+)\]\({re.escape(up)}([^)#]+)[^)]*\)", r"\1 (`\2`)", source[0])


def _index_words_of_readers(*event: Any) -> None:
    """Let the search find a page by the words in its comment `found by` first."""
    source = event[2]
    source[0] = re.sub(
        r"^<!-- found by: (.+?) -->$",
        lambda found: f"```{{index}} {_main_entries(found[1])}\n```",
        source[0],
        flags=re.MULTILINE,
    )


def _main_entries(words: str) -> str:
    return ", ".join(f"! {word.strip()}" for word in words.split(","))


def _level_captions(*event: Any) -> None:
    """Add the attribute that `role="heading"` requires."""
    context = event[3]
    for name in ("toctree", "furo_navigation_tree"):
        tree = context.get(name)
        if isinstance(tree, str):
            context[name] = tree.replace('role="heading"', 'role="heading" aria-level="2"')
