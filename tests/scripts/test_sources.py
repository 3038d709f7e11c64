"""The files that a script consists of, and the names for which it has to run again."""

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from projects import REPOSITORY

from mind2web2.scripts.sources import script_sources

HEAD = "from mind2web2 import CacheFileSys, Evaluator, LLMClient\n"
PURE = """\
import asyncio, json, math, os, re, sys, time, typing as t, urllib.parse
from collections import Counter
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from pathlib import Path
from dateutil.relativedelta import relativedelta
from pydantic import BaseModel, Field
from obj_task_eval.eval_toolkit import Extractor, create_evaluator
from mind2web2.api_tools import PDFParser, tool_googlemap

class Lake(BaseModel):
    depth: t.Optional[str] = Field(default=None)

async def evaluate_answer(client: LLMClient | None, cache: CacheFileSys, answer, logger) -> dict:
    evaluator = Evaluator()
    maps = tool_googlemap.GoogleMapsTool()
    parsed = datetime.strptime("2025-01-02", "%Y-%m-%d") + relativedelta(days=1)
    host = urllib.parse.urlparse(answer).netloc + json.dumps([re.sub("a", "b", answer)])
    for name in ("depth", "name"):
        getattr(Lake(), name, None)
    await asyncio.gather(*(evaluator.verify(host, None) for _ in range(math.ceil(2))))
    return evaluator.get_summary()
"""


def impure(tmp_path, text):
    """Return the impure names of a script with this text."""
    script = tmp_path / "lake.py"
    script.write_text(HEAD + text)
    return script_sources(script).impure


def test_a_script_of_pure_modules_need_not_run_again(tmp_path):
    assert impure(tmp_path, PURE) == ()


@pytest.mark.parametrize("task", ["museum_saturday", "library_facts", "step_free_walks"])
def test_scripts_of_the_example_need_not_run_again(task):
    [path] = (REPOSITORY / "eval_scripts" / "example").glob(f"{task}.*")
    assert script_sources(path).impure == ()


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("open('a')", "open"),
        ("__import__('os')", "__import__"),
        ("eval('1')", "eval"),
        ("exec('1')", "exec"),
        ("f = compile", "compile"),
        ("globals()['open']", "globals"),
        ("__builtins__", "__builtins__"),
        ("HERE = __file__", "__file__"),
        ("import os\nos.environ['HOME']", "os"),
        ("import os as system\nsystem.listdir()", "os"),
        ("from os import getenv\ngetenv('HOME')", "os.getenv"),
        ("import os.path\nos.path.exists('a')", "os.path"),
        ("from os import *", "os.*"),
        ("import pathlib\npathlib.Path('a')", "pathlib"),
        ("from pathlib import Path\nPath('a')", "pathlib.Path"),
        ("import sys\nsys.path.insert(0, 'a')", "sys"),
        ("import time\ntime.time()", "time"),
        ("import random\nrandom.random()", "random"),
        ("import subprocess\nsubprocess.run(['true'])", "subprocess"),
        ("import socket\nsocket.socket()", "socket"),
        ("import urllib.request\nurllib.request.urlopen('u')", "urllib.request"),
        ("import importlib\nimportlib.import_module('a')", "importlib"),
        ("import glob\nglob.glob('*')", "glob"),
        ("import locale\nlocale.getlocale()", "locale"),
        ("import json\njson.codecs.open('a')", "json.codecs"),
        ("import json\nmodule = json", "json as a value"),
        ("import re, typing\ntyping.sys.modules", "typing.sys"),
        ("from json import codecs\ncodecs.lookup('a')", "json.codecs"),
        ("import asyncio\nasyncio.to_thread(print)", "asyncio.to_thread"),
        ("import asyncio\nasyncio.subprocess", "asyncio.subprocess"),
        ("import logging\nlogging.FileHandler('a')", "logging.FileHandler"),
        ("import datetime\ndatetime.datetime.now()", ".now"),
        ("from datetime import date\ndate.today()", ".today"),
        ("from datetime import datetime\ndatetime.fromtimestamp(0)", ".fromtimestamp"),
        ("from datetime import datetime\ngetattr(datetime, 'now')()", ".now"),
        ("from operator import methodcaller\nmethodcaller('today')", ".today"),
        ("import operator\noperator.attrgetter('task_dir')", ".task_dir"),
        ("def f(cache): return cache.task_dir", ".task_dir"),
        ("def f(path): return path.read_text()", ".read_text"),
        ("f = lambda: 0\nf.__globals__", ".__globals__"),
        ("object.__subclasses__()", ".__subclasses__"),
        ("from pydantic import FilePath\nkind = FilePath", "pydantic.FilePath"),
        ("from pydantic import PastDate\nkind = PastDate", "pydantic.PastDate"),
        ("import pydantic\npydantic.ImportString", "pydantic.ImportString"),
        ("from lxml import etree", "lxml"),
        ("import numpy", "numpy"),
        ("from dateutil import parser\nparser.parse('May')", "dateutil.parser"),
        ("from mind2web2 import PDFParser\nPDFParser()", "mind2web2.PDFParser"),
        ("from mind2web2.api_tools import tool_pdf\ntool_pdf.is_pdf('u')", "tool_pdf"),
        ("CacheFileSys('folder')", "CacheFileSys"),
        ("import mind2web2\nmind2web2.CacheFileSys('a')", "mind2web2.CacheFileSys"),
        ("from mind2web2.utils.path_config import PathConfig\nPathConfig('.')", "Path"),
        ("from mind2web2.utils.misc import encode_image\nencode_image('a')", "encode"),
        ("import mind2web2.utils.files\nmind2web2.utils.files", "mind2web2.utils"),
        ("def (", "code that cannot be parsed"),
    ],
)
def test_what_reads_more_than_answer_and_pages_is_named(tmp_path, text, name):
    assert any(name in each for each in impure(tmp_path, text))


@pytest.fixture
def beside(tmp_path):
    """Return a script's folder with helper files."""
    (tmp_path / "helpers").mkdir()
    (tmp_path / "helpers" / "__init__.py").write_text("")
    (tmp_path / "helpers" / "depths.py").write_text("from . import units\nDEPTH = 1\n")
    (tmp_path / "helpers" / "units.py").write_text("import common\n")
    (tmp_path / "common.py").write_text("import json\n")
    return tmp_path


def helpers(folder, text):
    """Return the helper files of a script, and its impure names."""
    script = folder / "lake.py"
    script.write_text(text)
    found = script_sources(script)
    return list(found.helpers), found.impure


@pytest.mark.parametrize(
    "text",
    [
        "from helpers.depths import DEPTH\n",
        "from helpers import depths\n",
        "import helpers.depths as depths\n",
        "def f():\n    import helpers.depths\n",
    ],
)
def test_helper_files_are_found_through_other_helpers(beside, text):
    names = [
        "common.py",
        "helpers/__init__.py",
        "helpers/depths.py",
        "helpers/units.py",
    ]
    assert helpers(beside, text) == (names, ())
    (beside / "common.py").write_text("import os\nHERE = os.getcwd()\n")
    assert helpers(beside, text) == (names, ("os",))


def test_a_package_without_init_and_helpers_that_import_each_other(tmp_path):
    (tmp_path / "space").mkdir()
    (tmp_path / "space" / "one.py").write_text("import space.two\n")
    (tmp_path / "space" / "two.py").write_text("import space.one, lake\n")
    found = helpers(tmp_path, "from space import one\n")
    assert found == (["space/one.py", "space/two.py"], ())


def test_a_package_that_hides_a_helper_is_another_helper(beside):
    text = "import common\n"
    assert helpers(beside, text) == (["common.py"], ())
    (beside / "common").mkdir()
    (beside / "common" / "__init__.py").write_text("")
    assert helpers(beside, text) == (["common/__init__.py"], ())


def test_a_module_elsewhere_that_hides_a_helper_is_impure(beside, monkeypatch, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "common.py").write_text("")
    monkeypatch.syspath_prepend(elsewhere)
    assert helpers(beside, "import common\n") == ([], ("common",))


def test_a_helper_without_source_is_impure(tmp_path):
    (tmp_path / "shared.so").write_bytes(b"")
    assert helpers(tmp_path, "import shared\n") == ([], ("shared",))


def test_threads_may_look_for_helpers_at_the_same_time(tmp_path, monkeypatch):
    """A run reads the sources of several answers at once; Python's import caches are shared."""
    (tmp_path / "helper_of_threads.py").write_text("A = 1\n")
    script = tmp_path / "task.py"
    script.write_text("import helper_of_threads\n")
    looked = []
    interval_s = sys.getswitchinterval()
    monkeypatch.setattr(sys, "path_importer_cache", dict(sys.path_importer_cache))

    def look(thread):
        for number in range(40):
            # Python forgets such entries when its caches are emptied.
            sys.path_importer_cache[f"/none/{thread}/{number}"] = None
            looked.append(script_sources(script).helpers.keys())

    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(look, range(16)))
    finally:
        sys.setswitchinterval(interval_s)
    assert all(names == {"helper_of_threads.py"} for names in looked)
