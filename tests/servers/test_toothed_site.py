"""The site with teeth itself: every tooth answers, and the server stops whatever is under way."""

import threading

import httpx2
import pytest
from servers.teeth import BEHIND, FACT, PAGES, page
from servers.toothed_site import HOST, TEETH, ToothedSite
from site_server import SiteServer

WAITING = {"silent", "silent-body", "endless-stream", "slow-headers", "slow-body", "gzip-bomb"}
DROPPING = {"drop", "drop-body", "drop-then-fine"}
QUERIES = {"items": "?from=59&to=61", "drop-then-fine": "?times=1"}


class WatchedSite(ToothedSite):
    """Says when it was asked for something."""

    def __init__(self):
        """Make the sign that it was asked."""
        super().__init__()
        self.asked = threading.Event()

    def reply(self, request):
        """Answer, and say so."""
        self.asked.set()
        return super().reply(request)


@pytest.fixture(scope="module")
def site():
    """A running site."""
    with ToothedSite() as running:
        yield running


@pytest.fixture
def client():
    """A client that follows nothing and trusts nobody in particular."""
    with httpx2.Client(verify=False, trust_env=False) as made:
        yield made


@pytest.mark.parametrize("name", sorted(TEETH.keys() - WAITING - DROPPING))
def test_every_tooth_answers(site, client, name):
    """With a status, with its type, and the placeholders filled in."""
    reply = client.get(site.local(name) + QUERIES.get(name, ""))
    assert reply.status_code in (200, 302, 403, 429, 500, 503)
    assert reply.headers["content-type"]
    assert "{{" not in reply.text


@pytest.mark.parametrize("name", sorted(DROPPING))
def test_connections_are_dropped(site, client, name):
    """Where the table says so."""
    with pytest.raises(httpx2.RemoteProtocolError):
        client.get(site.local(name))


@pytest.mark.parametrize("name", ["drop-then-fine", "limited-then-fine", "error-then-fine"])
def test_troubles_pass_address_by_address(site, client, name):
    """The second visit of the same address is fine, of another one is not."""

    def answer(run):
        try:
            return client.get(site.local(name, run=run)).text
        except httpx2.RemoteProtocolError:
            return ""

    answers = [answer("one"), answer("one"), answer("two")]
    assert [BEHIND in text for text in answers] == [False, True, False]


def test_pages_and_table_agree():
    """Every page has its line in the table, and every line its page."""
    assert {file.stem for file in PAGES.iterdir()} == {
        name for name, (answer, _) in TEETH.items() if answer is page
    }


def test_hosts_are_told_apart_over_one_port(site, client):
    """By the Host header, over HTTP and HTTPS alike."""
    for scheme in ("http", "https"):
        address = f"{scheme}://127.0.0.1:{site.port}"
        teeth = client.get(f"{address}/teeth/frame-cross-site", headers={"Host": HOST}).text
        walks = client.get(f"{address}/walks", headers={"Host": "www.ottermoss.example"}).text
        assert FACT in teeth and f"{scheme}://www.elsewhere.example/teeth/frame-content" in teeth
        assert "Walks" in walks


def test_files_outside_of_the_site_are_not_served(site, client):
    """However they are asked for."""
    for host, path in (
        ("..", "/README.md"),
        ("www.ottermoss.example", "/..%2f..%2f..%2fREADME.md"),
        ("", "/"),
    ):
        assert client.get(site.url + path, headers={"Host": host}).status_code == 404


def test_the_gzip_bomb_unpacks_to_what_it_promises(site, client):
    """From a thousandth of the bytes."""
    reply = client.get(site.local("gzip-bomb", mb=20))
    assert len(reply.text) > 20_000_000
    assert reply.num_bytes_downloaded < 100_000


@pytest.mark.parametrize("name", ["silent", "silent-body", "endless-stream", "slow-headers"])
def test_the_server_stops_whatever_is_under_way(client, name):
    """And leaves no thread behind."""
    before = threading.active_count()
    failures = []

    def ask(address):
        try:
            client.get(address, timeout=60)
        except httpx2.HTTPError as error:
            failures.append(error)

    with WatchedSite() as site:
        asking = threading.Thread(target=ask, args=(site.local(name),))
        asking.start()
        assert site.asked.wait(10)
    asking.join()
    assert len(failures) == 1
    assert threading.active_count() == before


def test_requests_are_kept(client, tmp_path):
    """With host, path and query, of a folder of one's own too."""
    (tmp_path / "one.example").mkdir()
    (tmp_path / "one.example" / "index.html").write_text("<p>One</p>", encoding="utf-8")
    with SiteServer(tmp_path) as server:
        assert client.get(server.url + "/?q=1", headers={"Host": "one.example"}).text == "<p>One</p>"
        request = server.requests[0]
        assert (request.method, request.host, request.path, request.query) == (
            "GET",
            "one.example",
            "/",
            {"q": "1"},
        )
        assert server.hits("/") == 1
