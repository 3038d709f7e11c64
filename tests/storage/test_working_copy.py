"""Working copies of a root on two machines: pages, results and summaries that both of them write."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Event

import certifi
import pytest
from servers.local_http import Answer, LocalHttp
from servers.object_store import BUCKET, object_store

from mind2web2.errors import StorageError
from mind2web2.pages.cache import CacheFileSys
from mind2web2.runs.result_file import ResultFile
from mind2web2.runs.results import published, write_result
from mind2web2.runs.summaries import merge_all_results, write_task_summary
from mind2web2.storage import bucket, working_copy
from mind2web2.storage.bucket import Bucket
from mind2web2.storage.mirror import mirror, use_mirror
from mind2web2.storage.working_copy import WorkingCopy
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
    """Return a function that makes the working copy of another machine; the parameter is the URL's scheme."""
    for name, value in store.variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("mind2web2.storage.mirror._mirrors", {})

    def opened(name, limit_bytes=2**30):
        root = Bucket(
            f"{getattr(request, 'param', 's3')}://{BUCKET}/{request.node.name}"
        )
        copy = WorkingCopy(root, tmp_path / name, limit_bytes)
        use_mirror(copy.folder, copy)
        copy.pull(copy.folder)
        return copy

    return opened


def pages(copy):
    """Return the page cache of a task in a working copy, as it is published now."""
    folder = copy.folder / "bot" / "lake"
    copy.pull(folder)
    return CacheFileSys(folder)


def files_here(copy):
    """Return the sizes of the page files in a working copy."""
    return {
        path.name: path.stat().st_size for path in copy.folder.glob("bot/lake/*.txt")
    }


@IN_BOTH
def test_machines_see_each_others_pages(machine):
    """Both entries are in the index, also where both were written before either saw the other's."""
    one, two = machine("one"), machine("two")
    caches = pages(one), pages(two)
    caches[0].put_web(DEEP, "deep", None)
    caches[1].put_web(WIDE, "wide", None)
    for copy in (one, two):
        assert pages(copy).get_all_urls() == [DEEP, WIDE]
        assert pages(copy).get_web(DEEP) == ("deep", None)
        assert pages(copy).get_web(WIDE) == ("wide", None)
    pages(two).remove(DEEP)
    assert pages(one).get_all_urls() == [WIDE]


def test_the_first_capture_of_a_page_stays(machine):
    """A machine that captured the page too uses the one that was published first."""
    one, two = machine("one"), machine("two")
    caches = pages(one), pages(two)
    caches[0].put_web(DEEP, "first", None)
    caches[1].put_pdf(DEEP, b"%PDF second")
    assert caches[1].get_web(DEEP) == ("first", None)
    assert pages(one).has(DEEP) == "web"


def test_a_page_that_a_killed_machine_began_to_publish_is_replaced(
    machine, store, monkeypatch, request
):
    """Nothing lists its file, so that the next machine's capture is published in its place."""
    monkeypatch.setattr(working_copy, "_LISTING_WAIT_S", 0.0)
    one, two = machine("one"), machine("two")
    pages(one).put_web(DEEP, "whole", None)
    [name] = files_here(one)
    prefix = f"{request.node.name}/bot/lake"
    store.put(f"{prefix}/{name}", b"of a killed machine")
    store.put(f"{prefix}/index.json", b"{}")
    pages(two).put_web(DEEP, "mine", None)
    assert store.objects(prefix)[f"{prefix}/{name}"] == b"mine"
    assert pages(one).get_web(DEEP) == ("mine", None)


def test_a_new_capture_replaces_all_files_of_a_page(machine, store, request):
    """Other machines drop the old one; a screenshot that the page no longer has is deleted."""
    from io import BytesIO

    from PIL import Image

    image = BytesIO()
    Image.new("RGB", (8, 8)).save(image, "JPEG")
    one, two = machine("one"), machine("two")
    pages(one).put_web(DEEP, "old", image.getvalue())
    assert pages(two).get_web(DEEP)[1] is not None
    pages(one).put_web(DEEP, "new", None)
    assert pages(two).get_web(DEEP) == ("new", None)
    assert not [
        name for name in store.objects(request.node.name) if name.endswith(".jpg")
    ]


def test_a_page_that_is_replaced_while_it_is_read_is_an_error(machine):
    """Text and screenshot of two captures are not mixed; the next look finds the new page."""
    one, two = machine("one"), machine("two")
    pages(one).put_web(DEEP, "old", None)
    cache = pages(two)
    pages(one).put_web(DEEP, "new", None)
    with pytest.raises(StorageError, match="replaced by another machine"):
        cache.get_web(DEEP)
    assert pages(two).get_web(DEEP) == ("new", None)


def test_pages_take_no_more_than_the_limit(machine):
    """Those used longest ago are removed here, and fetched again when they are read."""
    one, two = machine("one"), machine("two", limit_bytes=35_000)
    urls = [f"https://lake.example/{number}" for number in range(8)]
    for url in urls:
        pages(one).put_web(url, url * 500, None)
    cache = pages(two)
    assert len(cache.get_all_urls()) == 8
    assert files_here(two) == {}
    for url in (*urls, *urls):
        assert cache.get_web(url) == (url * 500, None)
        assert 0 < sum(files_here(two).values()) <= 35_000
    assert cache.digest(urls[0]) == pages(one).digest(urls[0])


@IN_BOTH
def test_a_result_takes_a_name_that_no_machine_has_taken(machine):
    """Two machines that judge one answer in the same second keep both results."""
    one, two = machine("one"), machine("two")
    for copy in (one, two):
        write_result(
            copy.folder / "bot/lake/answer_1/results",
            "answer_1.md",
            ResultFile.of({"by": copy.folder.name}),
        )
    one.pull(one.folder)
    two.pull(two.folder)
    contents = [
        sorted(path.read_text() for path in copy.folder.rglob("*.md.json"))
        for copy in (one, two)
    ]
    assert contents[0] == contents[1]
    assert len(contents[0]) == 2


@IN_BOTH
def test_a_summary_is_derived_again_where_another_machine_was_faster(machine):
    """The published summary counts the files of both machines."""
    one, two = machine("one"), machine("two")
    turns = []

    def summed_up(copy, other=None):
        folder = copy.folder / "bot"
        write_whole(folder / f"{copy.folder.name}.txt", "a result")

        def write():
            names = sorted(path.name for path in folder.glob("*.txt"))
            write_whole(folder / "summary.json", " ".join(names))
            turns.append(copy.folder.name)
            if other is not None and len(turns) == 1:
                summed_up(other)
            return names

        return published(folder, write)

    mirror(two.folder).push(two.folder)
    assert summed_up(one, two) == ["one.txt", "two.txt"]
    assert turns == ["one", "two", "one"]
    two.pull(two.folder)
    assert (two.folder / "bot/summary.json").read_text() == "one.txt two.txt"


def test_removed_objects_are_removed_here(machine):
    """A file that was deleted in the bucket does not come back; a changed one is published."""
    one, two = machine("one"), machine("two")
    write_whole(one.folder / "bot/a.txt", "a")
    write_whole(one.folder / "bot/b.txt", "b")
    one.push(one.folder)
    two.pull(two.folder)
    one.remove(one.folder / "bot/a.txt")
    two.pull(two.folder)
    two.push(two.folder)
    assert sorted(path.name for path in two.folder.glob("bot/*.txt")) == ["b.txt"]


def test_judgments_and_locks_stay_here(machine, store, request):
    """Neither is published, nor are unfinished writes."""
    one = machine("one")
    for name in (
        "judgments.sqlite3",
        "judgments.sqlite3-wal",
        ".judging.lock",
        ".writing-1",
        "batches/a",
    ):
        write_whole(one.folder / "bot" / name, "x")
    write_whole(one.folder / "bot/usage.json", "{}")
    one.push(one.folder)
    assert list(store.objects(request.node.name)) == [
        f"{request.node.name}/bot/usage.json"
    ]


@IN_BOTH
@pytest.mark.parametrize("fault", ["refused", "dropped", "lost"])
def test_requests_that_fail_are_sent_again(machine, store, fault):
    """A write whose response was lost counts as done."""
    one = machine("one")
    with store.failing(lambda number, *_: fault if number % 2 else None):
        pages(one).put_web(DEEP, "deep", None)
        write_result(
            one.folder / "bot/lake/answer_1/results", "answer_1.md", ResultFile()
        )
    two = machine("two")
    assert pages(two).get_web(DEEP) == ("deep", None)
    assert len(list(two.folder.rglob("*.md.json"))) == 1


def test_a_write_that_is_answered_too_late_is_found_done(machine, store, monkeypatch):
    """It is sent again after the timeout, and its own object is no other machine's."""
    monkeypatch.setattr(bucket, "_REQUEST_TIMEOUT", timedelta(seconds=1))
    one = machine("one")
    late = iter(["late"])
    with store.failing(
        lambda _, __, path: next(late, None) if path.endswith(".json") else None
    ):
        write_result(
            one.folder / "bot/lake/answer_1/results", "answer_1.md", ResultFile()
        )
    assert [
        method for method, path in store.requests if path.endswith("answer_1.md.json")
    ][-3:] == [
        "PUT",
        "PUT",
        "GET",
    ]
    two = machine("two")
    assert len(list(two.folder.rglob("*.md.json"))) == 1


def test_an_outage_is_no_missing_page(machine, store, monkeypatch):
    """The error names the object; when the store is back, the page is read."""
    monkeypatch.setattr(bucket, "_MOST_RETRIES", 0)
    monkeypatch.setattr(bucket, "_FIRST_PAUSE_S", 0.0)
    pages(machine("one")).put_web(DEEP, "deep", None)
    cache = pages(machine("two"))
    with (
        store.failing(lambda *_: "refused"),
        pytest.raises(
            StorageError, match=rf"{BUCKET}/.*\.txt: the object store failed: .*503"
        ),
    ):
        cache.get_web(DEEP)
    assert cache.get_web(DEEP) == ("deep", None)


def test_a_list_that_arrives_late_hides_no_page(machine, monkeypatch):
    """Two answers look at a task's pages at once, while another machine publishes one."""
    one, two = machine("one"), machine("two")
    folder = pages(two).task_dir
    listing, has_begun, may_end = Bucket.listing, Event(), Event()
    first = iter([True])

    def slow(root, name):
        found = listing(root, name)
        if next(first, False):
            has_begun.set()
            may_end.wait()
        return found

    monkeypatch.setattr(Bucket, "listing", slow)
    with ThreadPoolExecutor(1) as threads:
        late = threads.submit(two.pull, folder)
        has_begun.wait()
        pages(one).put_web(DEEP, "deep", None)
        cache = pages(two)
        may_end.set()
        late.result()
    assert cache.get_web(DEEP) == ("deep", None)


def test_a_summary_that_is_replaced_while_it_is_pulled_is_derived_from_all_results(
    machine, monkeypatch
):
    """The list of files is older than the summary, which counts one more."""
    one, two = machine("one"), machine("two")

    def summed_up(copy, name):
        folder = copy.folder / "bot"
        write_whole(folder / name, "a result")

        def write():
            names = sorted(path.name for path in folder.glob("*.txt"))
            write_whole(folder / "summary.json", " ".join(names))
            return names

        return published(folder, write)

    def listing_before(root, name):
        found = listing(root, name)
        if next(more, None):
            summed_up(one, "more.txt")
        return found

    summed_up(one, "first.txt")
    listing, more = Bucket.listing, iter([True])
    monkeypatch.setattr(Bucket, "listing", listing_before)
    assert summed_up(two, "last.txt") == ["first.txt", "last.txt", "more.txt"]


def test_results_of_all_agents_have_the_tasks_of_other_machines(machine):
    """Also those that were summed up after this machine had read the agent's folder."""
    one, two = machine("one"), machine("two")
    for copy, task_id in ((two, "hill"), (one, "lake"), (two, "pond")):
        write_result(
            copy.folder / f"bot/{task_id}/answer_1/results",
            "answer_1.md",
            ResultFile.of(
                {
                    "agent_name": "bot",
                    "answer_name": "answer_1.md",
                    "task_id": task_id,
                    "final_score": 0.5,
                }
            ),
        )
        write_task_summary(copy.folder, "bot", task_id, {})
        merged = merge_all_results(copy.folder)
    assert list(merged) == ["hill", "lake", "pond"]


AZURE_MISSING = """<?xml version="1.0" encoding="UTF-8"?>
<Error><Code>ContainerNotFound</Code><Message>The specified container does not exist.</Message></Error>"""
AZURE_LIST = """<?xml version="1.0" encoding="utf-8"?><EnumerationResults><Blobs><Blob><Name>a.txt</Name>
<Properties><Last-Modified>Sun, 22 Nov 2026 10:00:00 GMT</Last-Modified><Etag>0x8D</Etag>
<Content-Length>1</Content-Length><Content-Type>text/plain</Content-Type></Properties></Blob></Blobs><NextMarker/></EnumerationResults>"""


def test_azure_lists_the_edition_that_it_sends(monkeypatch):
    """Otherwise each page would count as replaced since it was listed. A missing container is named."""

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
        with pytest.raises(
            StorageError, match=r"^az://missing/x: the bucket does not exist"
        ):
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
def test_buckets_of_one_name_have_working_copies_of_their_own(
    monkeypatch, url, variable
):
    """The name is another bucket on another server, and in another account of Azure."""
    folders = set()
    for value in ("https://one.example", "https://two.example"):
        monkeypatch.setenv(variable, value)
        folders.add(working_copy._folder_of(url))
    assert len(folders) == 2
