"""Google Maps for eval scripts: cities, addresses, distances and travel times."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict

from mind2web2.api_tools.surroundings import service_answer
from mind2web2.errors import ToolError
from mind2web2.judge.service_request import ServiceRequest
from mind2web2.utils.api_misuse import script_api
from mind2web2.utils.retry import PassingError, Tries, tried_in_thread

if TYPE_CHECKING:
    import googlemaps

KEY_VARIABLE = "GOOGLE_MAPS_API_KEY"
LEVELS = ("locality", "sublocality")
MODES = ("driving", "walking", "transit")

# Scripts compare with these texts, or test for an int (eval-scripts.md).
CITY_NOT_FOUND = "City/Sub-city name not found"
DISTANCE_NOT_FOUND = "Distance not found"
TRAVEL_TIME_NOT_FOUND = "Travel time not found"

CONNECT_TIMEOUT_S = 5
READ_TIMEOUT_S = 15
MAX_TRIES = 3

MapsRequest = Literal["geocode", "distance_matrix"]

# Statuses of a place or a route that does not exist; any other status is a failure.
_NO_ROUTE = {"ZERO_RESULTS", "NOT_FOUND"}


class AddressComponent(TypedDict):
    """A part of an address."""

    long_name: str
    types: NotRequired[list[str]]


class Place(TypedDict, total=False):
    """A match of the geocoder; scripts receive all fields that it has."""

    address_components: list[AddressComponent]


@script_api
class GoogleMapsTool:
    """Asks Google Maps, with the key of the environment variable ``GOOGLE_MAPS_API_KEY``.

    A failure of the service (refused key, exhausted quota, no network) is a ``ToolError``, never a
    "not found". An empty address is a place that does not exist, and is not asked for.
    """

    def __init__(
        self,
        *,
        base_url: str = "https://maps.googleapis.com",
        retry_timeout_s: float = 30.0,
        first_delay_s: float = 0.5,
    ) -> None:
        self._base_url = base_url
        self._retry_timeout_s = retry_timeout_s
        self._first_delay_s = first_delay_s
        self._client: googlemaps.Client | None = None
        self._client_lock = threading.Lock()

    async def get_city_name(self, address: str, level: str = "locality") -> str:
        """Return the name of the city, or of its part, that an address is in."""
        _check_choice("level", level, LEVELS)
        places = await self.get_address_information(address)
        try:
            for component in places[0].get("address_components", []) if places else ():
                if level in component.get("types", []):
                    return str(component["long_name"])
        except (AttributeError, KeyError, TypeError) as error:
            raise ToolError(
                "google maps answered a geocoding request in an unknown form"
            ) from error
        return CITY_NOT_FOUND

    async def get_address_information(self, address: str) -> list[Place]:
        """Return the geocoder's matches for an address, best first."""
        if _is_blank(address):
            return []
        places = await self.request("geocode", address)
        if not isinstance(places, list):
            raise ToolError(
                "google maps answered a geocoding request with something else than a list"
            )
        return places

    async def calculate_distance(
        self, address1: str, address2: str, mode: str = "driving"
    ) -> int | str:
        """Return the metres between two addresses, or ``"Distance not found"``."""
        metres = await self._measure_route(address1, address2, mode, "distance")
        return DISTANCE_NOT_FOUND if metres is None else metres

    async def calculate_travel_time(
        self, address1: str, address2: str, mode: str = "driving"
    ) -> int | str:
        """Return the seconds between two addresses, or ``"Travel time not found"``."""
        seconds = await self._measure_route(address1, address2, mode, "duration")
        return TRAVEL_TIME_NOT_FOUND if seconds is None else seconds

    async def _measure_route(self, a: str, b: str, mode: str, measure: str) -> int | None:
        _check_choice("mode", mode, MODES)
        if _is_blank(a) or _is_blank(b):
            return None
        # A bar would separate two places.
        origin, destination = a.replace("|", " "), b.replace("|", " ")
        matrix = await self.request("distance_matrix", [origin], [destination], mode=mode)
        try:
            route = matrix["rows"][0]["elements"][0]
            if route["status"] in _NO_ROUTE:
                return None
            if route["status"] == "OK":
                return int(route[measure]["value"])
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise ToolError("google maps answered a distance request in an unknown form") from error
        raise ToolError(
            f"google maps found no answer for the way from {a} to {b}: {route['status']}"
        )

    async def request(self, name: MapsRequest, *arguments: Any, **keywords: Any) -> Any:
        """Return the result of a method of the library's client, with retries.

        Raises:
            ToolError: the service refused or failed.
        """

        async def ask() -> Any:
            # In a thread, since the library blocks.
            return await asyncio.to_thread(
                self._ask_with_retries,
                lambda client: getattr(client, name)(*arguments, **keywords),
            )

        return await service_answer(ServiceRequest("google_maps", name, arguments, keywords), ask)

    def _ask_with_retries(self, request: Callable[[googlemaps.Client], Any]) -> Any:
        """Make a request.

        The library itself repeats on 5xx and rate limits, we on dropped connections.
        """
        client = self._get_client()
        try:
            tries = Tries(MAX_TRIES, self._first_delay_s)
            return tried_in_thread(partial(_asked_once, request, client), tries)
        except PassingError as failure:
            raise ToolError(str(failure)) from None

    def _get_client(self) -> googlemaps.Client:
        with ToolError.naming_extra("The maps tool", "maps"):
            import googlemaps

        with self._client_lock:
            if self._client is None:
                key = os.environ.get(KEY_VARIABLE, "").strip()
                if not key:
                    raise ToolError(
                        f"no key for google maps: set the environment variable {KEY_VARIABLE}"
                    )
                try:
                    self._client = googlemaps.Client(
                        key=key,
                        connect_timeout=CONNECT_TIMEOUT_S,
                        read_timeout=READ_TIMEOUT_S,
                        retry_timeout=self._retry_timeout_s,
                        base_url=self._base_url,
                    )
                except ValueError:
                    raise ToolError(
                        f"the key in {KEY_VARIABLE} is not one of google maps: correct it"
                    ) from None
            return self._client


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, not {value!r}")


def _is_blank(address: str | None) -> bool:
    """Return whether there is no address; scripts pass on values that an answer left out."""
    return address is None or not address.strip()


def _asked_once(request: Callable[[googlemaps.Client], Any], client: googlemaps.Client) -> Any:
    from googlemaps import exceptions

    try:
        return request(client)
    except (
        exceptions.ApiError,
        exceptions.TransportError,
        exceptions.Timeout,
        ValueError,
        KeyError,
        TypeError,
    ) as error:
        # The error is not chained, because the library's errors show the URL with the key in it.
        if _can_pass(error):
            raise PassingError(_describe(error)) from None
        raise ToolError(_describe(error)) from None


def _can_pass(error: Exception) -> bool:
    """Tells whether the same request may succeed in a moment."""
    from googlemaps import exceptions

    if isinstance(error, exceptions.ApiError):
        return bool(error.status == "UNKNOWN_ERROR")
    return isinstance(error, exceptions.TransportError) and not isinstance(
        error, exceptions.HTTPError
    )


def _describe(error: Exception) -> str:
    """Return one line on a failed request, without the URL that the library's own texts contain."""
    from googlemaps import exceptions

    if isinstance(error, exceptions.ApiError):
        cure = (
            f"; check {KEY_VARIABLE} and its quota"
            if error.status in {"REQUEST_DENIED", "OVER_DAILY_LIMIT"}
            else ""
        )
        return " ".join(f"google maps refused the request: {error}{cure}".split())
    if isinstance(error, exceptions.HTTPError):
        return f"google maps failed: HTTP {error.status_code}"
    if isinstance(error, exceptions.TransportError):
        return f"google maps cannot be reached: {type(error.base_exception).__name__}"
    if isinstance(error, exceptions.Timeout):
        return "google maps did not answer in time, or kept refusing (rate limit, server error)"
    return "google maps answered in an unknown form"
