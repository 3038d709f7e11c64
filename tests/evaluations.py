"""Evaluations of small answers with a scripted judge, and pages and wishes for pages."""

import io
import logging
import random
from contextlib import nullcontext

import pytest
from PIL import Image
from scripted_judge import ScriptedJudge

from mind2web2 import CacheFileSys, Evaluator
from mind2web2.errors import CaptureError
from mind2web2.pages.captures import SharedCaptures
from mind2web2.pages.library import PageLibrary, PageRequest
from mind2web2.pages.prepared_page import PageSettings

PAGE = "https://lake.example/depth"
OTHER = "https://lake.example/other"
ANSWER = f"The lake is 80 m deep [depth]({PAGE})."
TASK = "How deep is the lake?"


def started(judge=None, cache=None, **settings):
    """Return an evaluator that is ready to verify."""
    evaluator = Evaluator()
    client = ScriptedJudge() if judge is None else judge
    given = {
        "answer": ANSWER,
        "task_description": TASK,
        "global_cache": cache,
        **settings,
    }
    evaluator.initialize("lake", client=client, **given)
    return evaluator


def stored(folder, **texts):
    """Return a page cache with ``PAGE`` and ``OTHER``, or with named pages of ``lake.example``."""
    cache = CacheFileSys(folder)
    for name, text in (texts or {"depth": "Depth: 80 m", "other": "Fish: none"}).items():
        cache.put_web(f"https://lake.example/{name}", text, None)
    return cache


def image(width_px=60, height_px=40, kind="JPEG"):
    """Return an image file that compresses as badly as a photograph."""
    noise = random.Random(1).randbytes(width_px * height_px)
    buffer = io.BytesIO()
    Image.frombytes("L", (width_px, height_px), noise).save(buffer, kind)
    return buffer.getvalue()


class TextCache:
    """The least that a cache of somebody else's can be: one page of text."""

    def __init__(self, text):
        self.text = text

    def has(self, _url):
        """Say yes."""
        return "web"

    def get_web(self, _url, _get_screenshot=True):
        """Return the text."""
        return self.text, None


def tree_nodes(summary):
    """Return the nodes of a result's tree by id."""
    found, queue = {}, [summary["eval_breakdown"][0]["verification_tree"]]
    while queue:
        node = queue.pop()
        found[node["id"]] = node
        queue += node["children"]
    return found


def evidence_of(evaluator, node_id):
    """Return a leaf's evidence as the result shows it."""
    return tree_nodes(evaluator.get_summary())[node_id]["evidence"]


def page_request(cache, url=PAGE, *, with_images=True, capture=None, **settings):
    """Return a wish for a page."""
    return PageRequest(
        cache,
        url,
        PageSettings(**settings),
        with_images,
        None if capture is None else SharedCaptures.by(capture),
        nullcontext(),
        logging.getLogger("tests"),
    )


async def reason_for(wish):
    """Return why a page cannot be had."""
    with pytest.raises(CaptureError) as caught:
        await PageLibrary().page(wish)
    return str(caught.value)
