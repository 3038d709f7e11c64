"""The maps tool against a local server that speaks Google's protocol."""

import pytest
from servers.local_http import Answer
from servers.maps_server import KEY, PLACES, MapsServer, status

from mind2web2.api_tools import tool_googlemap
from mind2web2.errors import ToolError

HOME, ISLAND = "1 Mill Lane, Tarn", "Lake Island"


@pytest.fixture
def maps():
    """A server whose faults tests may set."""
    return MapsServer()


@pytest.fixture
def web(maps, monkeypatch):
    """The running server, with the environment's key being the right one."""
    monkeypatch.setenv("GOOGLE_MAPS_API_KEY", KEY)
    with maps.serve() as running:
        yield running


@pytest.fixture
def tool(web):
    """A tool that asks the local server and does not wait before it tries again."""
    return tool_googlemap.GoogleMapsTool(base_url=web.url, first_delay_s=0)


@pytest.mark.parametrize(
    ("address", "level", "name"),
    [
        (HOME, "locality", "Tarn"),
        (HOME, "sublocality", "Oldside"),
        (ISLAND, "locality", "City/Sub-city name not found"),
        ("Nowhere", "locality", "City/Sub-city name not found"),
    ],
)
async def test_city_of_an_address(tool, address, level, name):
    """The city, or its part, is read from the best match."""
    assert await tool.get_city_name(address, level) == name


@pytest.mark.parametrize(("address", "places"), [(HOME, PLACES[HOME]), ("Nowhere", [])])
async def test_address_information_is_the_geocoders_list(tool, address, places):
    """All matches are handed on as they came."""
    assert await tool.get_address_information(address) == places


@pytest.mark.parametrize(
    ("destination", "mode", "metres", "seconds"),
    [
        (ISLAND, "driving", 12_345, 1_020),
        (ISLAND, "walking", 0, 0),
        (ISLAND, "transit", "Distance not found", "Travel time not found"),
        ("The Moon", "driving", "Distance not found", "Travel time not found"),
    ],
)
async def test_distance_and_time(tool, destination, mode, metres, seconds):
    """Routes are measured in metres and seconds; where there is none, a text says so."""
    assert await tool.calculate_distance(HOME, destination, mode) == metres
    assert await tool.calculate_travel_time(HOME, destination, mode) == seconds


@pytest.mark.parametrize("blank", ["", "  ", None])
async def test_no_address_is_no_place_and_not_asked_for(tool, web, blank):
    assert await tool.get_city_name(blank) == "City/Sub-city name not found"
    assert await tool.calculate_distance(HOME, blank) == "Distance not found"
    assert await tool.calculate_travel_time(blank, HOME) == "Travel time not found"
    assert web.requests == []


async def test_a_bar_does_not_make_two_places(tool, web):
    """The protocol separates places by bars; one address stays one."""
    assert (
        await tool.calculate_distance(HOME.replace(", ", ",|"), ISLAND.replace(" ", "|")) == 12_345
    )
    assert len(web.requests) == 1


async def test_wrong_choices_raise():
    """A level or mode that is not one of those offered is a mistake of the script."""
    tool = tool_googlemap.GoogleMapsTool()
    with pytest.raises(
        ValueError, match="level must be one of locality, sublocality, not 'country'"
    ):
        await tool.get_city_name(HOME, "country")
    with pytest.raises(ValueError, match="mode"):
        await tool.calculate_distance(HOME, ISLAND, mode="bicycling")
    with pytest.raises(ValueError, match="mode"):
        await tool.calculate_travel_time(HOME, ISLAND, mode="flying")


@pytest.mark.parametrize(
    ("key", "says"),
    [(None, "set the environment"), ("", "set the environment"), ("x", "correct")],
)
async def test_a_missing_key_fails_at_the_first_call(monkeypatch, key, says):
    """Construction succeeds; the call says which variable to set."""
    monkeypatch.delenv("GOOGLE_MAPS_API_KEY", raising=False)
    tool = tool_googlemap.GoogleMapsTool()
    if key is not None:
        monkeypatch.setenv("GOOGLE_MAPS_API_KEY", key)
    with pytest.raises(ToolError, match="GOOGLE_MAPS_API_KEY") as caught:
        await tool.get_city_name(HOME)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (
            status("REQUEST_DENIED", "This key is not allowed."),
            "REQUEST_DENIED.*GOOGLE_MAPS_API_KEY",
        ),
        (status("OVER_DAILY_LIMIT", "Enable billing."), "OVER_DAILY_LIMIT"),
        (status("INVALID_REQUEST", "What?"), "INVALID_REQUEST"),
        (status("UNKNOWN_ERROR", "Server trouble."), "UNKNOWN_ERROR"),
        (Answer(status=403), "HTTP 403"),
        (Answer(b"<html>hello</html>"), "unknown form"),
        (Answer(b"[]"), "unknown form"),
        (Answer(drops=True), "cannot be reached"),
    ],
)
async def test_a_failing_service_is_never_a_not_found(tool, maps, fault, says):
    """Refusals, outages and nonsense raise from every call, on one line, without the key."""
    calls = (
        lambda: tool.get_city_name(HOME),
        lambda: tool.calculate_distance(HOME, ISLAND),
        lambda: tool.calculate_travel_time(HOME, ISLAND),
    )
    for call in calls:
        maps.faults[:] = [fault] * 3
        with pytest.raises(ToolError, match=says) as caught:
            await call()
        assert "\n" not in str(caught.value)
        assert KEY not in str(caught.value)
        assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    "answer",
    [
        b'{"status": "OK", "rows": []}',
        b'{"status": "OK"}',
        b'{"status": "OK", "rows": 7}',
    ],
)
async def test_a_matrix_without_the_route_is_a_failure(tool, maps, answer):
    """An answer that leaves the route out does not say that there is none."""
    maps.faults[:] = [Answer(answer)]
    with pytest.raises(ToolError, match="unknown form"):
        await tool.calculate_distance(HOME, ISLAND)


@pytest.mark.parametrize(
    "results",
    [
        b"[7]",
        b'[{"address_components": 7}]',
        b'[{"address_components": [{"types": ["locality"]}]}]',
    ],
)
async def test_a_place_in_another_form_is_a_failure(tool, maps, results):
    """An answer that nobody can read does not say that there is no city."""
    maps.faults[:] = [Answer(b'{"status": "OK", "results": %s}' % results)]
    with pytest.raises(ToolError, match="unknown form"):
        await tool.get_city_name(HOME)


@pytest.mark.parametrize("fault", [status("OVER_QUERY_LIMIT", "Slow down."), Answer(status=503)])
async def test_tries_end(web, maps, fault):
    """A service that keeps refusing is given up after the time for new tries."""
    tool = tool_googlemap.GoogleMapsTool(base_url=web.url, retry_timeout_s=0.5)
    maps.faults[:] = [fault] * 500
    with pytest.raises(ToolError, match="kept refusing"):
        await tool.get_city_name(HOME)
    assert 1 < len(web.requests) < 500


async def test_a_route_too_long_to_compute_is_a_failure(tool):
    with pytest.raises(ToolError, match="MAX_ROUTE_LENGTH_EXCEEDED"):
        await tool.calculate_distance(HOME, "Far Away")


@pytest.mark.parametrize("fault", [status("UNKNOWN_ERROR", "Try again."), Answer(drops=True)])
async def test_passing_failures_are_tried_again(tool, maps, fault):
    """A failure followed by a good answer recovers."""
    maps.faults[:] = [fault, fault]
    assert await tool.get_city_name(HOME) == "Tarn"


async def test_the_library_tries_again_after_a_server_error(web, maps):
    """A 500 or a rate limit followed by a good answer recovers."""
    tool = tool_googlemap.GoogleMapsTool(base_url=web.url)
    maps.faults[:] = [Answer(status=500)]
    assert await tool.get_city_name(HOME) == "Tarn"


async def test_an_unreachable_service_is_named(monkeypatch):
    """No network at all is a failure of the tool, and the key stays out of the message."""
    monkeypatch.setenv("GOOGLE_MAPS_API_KEY", KEY)
    with MapsServer().serve() as web:
        gone = web.url
    tool = tool_googlemap.GoogleMapsTool(base_url=gone, first_delay_s=0)
    with pytest.raises(ToolError, match="cannot be reached: ConnectionError"):
        await tool.get_address_information(HOME)
