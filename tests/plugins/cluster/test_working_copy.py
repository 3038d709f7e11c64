"""Working copies of a root on two machines that both write."""

from datetime import timedelta

import certifi
import pytest
from servers.local_http import Answer, LocalHttp
from servers.object_store import BUCKET, object_store

from mind2web2.errors import StorageError
from mind2web2.pages.cache import CacheFileSys
from mind2web2.plugins.cluster import bucket, working_copy
from mind2web2.plugins.cluster.bucket import Bucket
from mind2web2.plugins.cluster.working_copy import WorkingCopy
from mind2web2.results.result_file import ResultFile
from mind2web2.results.stored_results import write_result
from mind2web2.utils.files import write_whole

# They name editions in conditional writes in different ways.
IN_BOTH = pytest.mark.parametrize("machine", ["s3", "gs"], indirect=True)
DEEP, WIDE = "https://lake.example/deep", "https://lake.example/wide"


@pytest.fixture(scope="module")
def store():
    """Return an object store for all tests; each has a prefix of its own."""
    with object_store() as store:
        yield store


@pytest.fixture
def machine(store, tmp_path, monkeypatch, request):
    """Return a function that begins a command on a machine; the parameter is the URL's scheme."""
    for name, value in store.variables.items():
        monkeypatch.setenv(name, value)
    scheme = getattr(request, "param", "s3")

    def command(name):
        root = Bucket(f"{scheme}://{BUCKET}/{request.node.name}")
        copy = WorkingCopy(root, tmp_path / name)
        copy.bring([""])
        return copy

    return command


def pages(copy):
    """Return the page cache of a task in a working copy."""
    return CacheFileSys(copy.folder / "bot" / "lake")


@IN_BOTH
def test_machines_see_each_others_pages(machine):
    """Both entries are in the index, also where both were written before either saw the other's."""
    one, two = machine("one"), machine("two")
    pages(one).put_web(DEEP, "deep", None)
    pages(two).put_web(WIDE, "wide", None)
    for copy in (one, two):
        copy.take_away()
    for name in ("one", "two"):
        seen = pages(machine(name))
        assert seen.get_all_urls() == [DEEP, WIDE]
        assert seen.get_web(DEEP) == ("deep", None)
        assert seen.get_web(WIDE) == ("wide", None)
    remover = machine("two")
    pages(remover).remove(DEEP)
    remover.take_away()
    one = machine("one")
    assert pages(one).get_all_urls() == [WIDE]
    assert len(list(one.folder.glob("bot/lake/*.txt"))) == 1


def test_the_first_capture_of_a_page_stays(machine):
    """A machine that captured the page too gets the one that was published first."""
    one, two = machine("one"), machine("two")
    pages(one).put_web(DEEP, "first", None)
    pages(two).put_pdf(DEEP, b"%PDF second")
    one.take_away()
    two.take_away()
    for name in ("one", "two"):
        copy = machine(name)
        assert pages(copy).get_web(DEEP) == ("first", None)
        assert not list(copy.folder.glob("bot/lake/*.pdf"))


def test_a_new_capture_replaces_all_files_of_a_page(machine):
    """Other machines drop the old one, and a screenshot that the page no longer has."""
    one = machine("one")
    folder = one.folder / "bot/lake"
    pages(one).put_web(DEEP, "old", None)
    stem = next(folder.glob("*.txt")).stem
    write_whole(folder / f"{stem}.jpg", b"picture")
    one.take_away()
    machine("two")
    pages(one).put_web(DEEP, "new", None)
    (folder / f"{stem}.jpg").unlink(missing_ok=True)
    one.take_away()
    two = machine("two")
    assert pages(two).get_web(DEEP) == ("new", None)
    assert not list(two.folder.rglob("*.jpg"))


def test_results_of_two_machines_stay_and_sums_are_made_again(machine):
    one, two = machine("one"), machine("two")
    for copy, answer in ((one, "answer_1"), (two, "answer_2")):
        results = copy.folder / "bot/lake" / answer / "results"
        write_result(results, f"{answer}.md", ResultFile())
        write_whole(copy.folder / "bot/lake/summary.json", answer)
        write_whole(copy.folder / "bot/progress.json", answer)
    one.take_away()
    with pytest.raises(StorageError, match=r"lake/summary\.json, and that stands: run"):
        two.take_away()
    again = machine("two")
    assert len(list(again.folder.rglob("*.md.json"))) == 2
    assert (again.folder / "bot/lake/summary.json").read_text() == "answer_1"
    write_whole(again.folder / "bot/lake/summary.json", "both")
    again.take_away()
    assert (machine("one").folder / "bot/lake/summary.json").read_text() == "both"


def test_results_of_all_agents_keep_those_that_are_not_here(machine, tmp_path):
    """A command brings the agents that it names."""
    one = machine("one")
    write_whole(one.folder / "all_results.json", '{"lake": {"bot": [1], "ant": [2]}}')
    (one.folder / "bot").mkdir()
    (one.folder / "ant").mkdir()
    one.take_away()
    two = WorkingCopy(machine("two")._bucket, tmp_path / "three")
    two.bring(["bot", "all_results.json"])
    write_whole(two.folder / "all_results.json", '{"sea": {"bot": [3], "ant": [0]}}')
    two.take_away()
    text = (machine("one").folder / "all_results.json").read_text()
    assert "".join(text.split()) == '{"lake":{"ant":[2]},"sea":{"bot":[3]}}'


def test_what_was_removed_here_is_removed_in_the_store(machine, store, request):
    """As results of a task that are deleted."""
    one = machine("one")
    write_whole(one.folder / "bot/lake/summary.json", "[]")
    one.take_away()
    (one.folder / "bot/lake/summary.json").unlink()
    one.take_away()
    assert store.objects(request.node.name) == {}


def test_judgments_and_locks_stay_here(machine, store, request):
    """Judgments have stores of their own; a lock or a batch means nothing elsewhere."""
    one = machine("one")
    for name in (
        "bot/judgments.sqlite3",
        "bot/judgments.sqlite3-wal",
        "bot/batches/1.json",
        "bot/lake/.summing_up.lock",
        "bot/lake/index.json.damaged-1",
        "bot/usage.json",
    ):
        write_whole(one.folder / name, "x")
    one.take_away()
    assert list(store.objects(request.node.name)) == [f"{request.node.name}/bot/usage.json"]


@IN_BOTH
@pytest.mark.parametrize("fault", ["refused", "dropped", "lost"])
def test_requests_that_fail_are_sent_again(machine, store, fault):
    """A write whose response was lost counts as done."""
    one = machine("one")
    pages(one).put_web(DEEP, "deep", None)
    write_result(one.folder / "bot/lake/answer_1/results", "answer_1.md", ResultFile())
    with store.failing(lambda number, *_: fault if number % 2 else None):
        one.take_away()
    two = machine("two")
    assert pages(two).get_web(DEEP) == ("deep", None)
    assert len(list(two.folder.rglob("*.md.json"))) == 1


def test_a_write_that_is_answered_too_late_is_found_done(machine, store, monkeypatch):
    """It is sent again after the timeout, and its own object is not taken for another machine's."""
    monkeypatch.setattr(bucket, "_REQUEST_TIMEOUT", timedelta(seconds=1))
    one = machine("one")
    late = iter(["late"])
    write_result(one.folder / "bot/lake/answer_1/results", "answer_1.md", ResultFile())
    with store.failing(lambda _, __, path: next(late, None) if path.endswith(".json") else None):
        one.take_away()
    assert [method for method, path in store.requests if path.endswith("answer_1.md.json")][
        -3:
    ] == ["PUT", "PUT", "GET"]
    assert len(list(machine("two").folder.rglob("*.md.json"))) == 1


AZURE_MISSING = """<?xml version="1.0" encoding="UTF-8"?>
<Error><Code>ContainerNotFound</Code><Message>The specified container does not exist.</Message></Error>"""
AZURE_LIST = """<?xml version="1.0" encoding="utf-8"?><EnumerationResults><Blobs><Blob><Name>a.txt</Name>
<Properties><Last-Modified>Sun, 22 Nov 2026 10:00:00 GMT</Last-Modified><Etag>0x8D</Etag>
<Content-Length>1</Content-Length><Content-Type>text/plain</Content-Type></Properties></Blob></Blobs><NextMarker/></EnumerationResults>"""


def test_azure_lists_the_edition_that_it_sends(monkeypatch):
    """Otherwise each page would count as replaced since it was listed.

    A missing container is named.
    """

    def answer(request):
        if "missing" in request.path:
            return Answer(AZURE_MISSING.encode(), status=404)
        body = AZURE_LIST.encode() if "comp" in request.query else b"a"
        headers = {"ETag": '"0x8D"', "Last-Modified": "Sun, 22 Nov 2026 10:00:00 GMT"}
        return Answer(body, headers=headers)

    with LocalHttp(answer) as server:
        for name, value in {
            "AZURE_STORAGE_ACCOUNT_NAME": "lab",
            "AZURE_STORAGE_ACCOUNT_KEY": "a2V5",
            "AZURE_STORAGE_ENDPOINT": server.url,
            "AWS_ALLOW_HTTP": "true",
            "SSL_CERT_FILE": certifi.where(),
        }.items():
            monkeypatch.setenv(name, value)
        root = Bucket("az://pages")
        content, edition = root.get("a.txt")
        assert (content, root.listing("")) == (b"a", {"a.txt": edition.etag})
        with pytest.raises(StorageError, match=r"^az://missing/x: the bucket does not exist"):
            Bucket("az://missing/x").listing("")


@pytest.mark.parametrize(
    ("url", "variable"),
    [
        ("s3://lab/x", "AWS_ENDPOINT_URL"),
        ("gs://lab/x", "GOOGLE_BASE_URL"),
        ("az://lab/x", "AZURE_STORAGE_ENDPOINT"),
        ("az://lab/x", "AZURE_STORAGE_ACCOUNT_NAME"),
    ],
)
def test_buckets_of_one_name_have_working_copies_of_their_own(monkeypatch, url, variable):
    """The name is another bucket on another server, and in another account of Azure."""
    folders = set()
    for value in ("https://one.example", "https://two.example"):
        monkeypatch.setenv(variable, value)
        folders.add(working_copy._folder_of(url))
    assert len(folders) == 2
