"""Google Maps web services on loopback: geocoding and distance matrix over a made-up country."""

import json

from servers.local_http import Answer, Request, Service

KEY = "AIza-local"

PLACES = {
    "1 Mill Lane, Tarn": [
        {
            "formatted_address": "1 Mill Lane, Oldside, Tarn",
            "address_components": [
                {"long_name": "Mill Lane", "short_name": "Mill Ln", "types": ["route"]},
                {
                    "long_name": "Oldside",
                    "short_name": "Oldside",
                    "types": ["political", "sublocality"],
                },
                {
                    "long_name": "Tarn",
                    "short_name": "TRN",
                    "types": ["locality", "political"],
                },
            ],
        },
        {"formatted_address": "another Tarn", "address_components": []},
    ],
    "Lake Island": [
        {
            "formatted_address": "Lake Island",
            "address_components": [{"long_name": "Lake Island", "types": ["island"]}],
        },
    ],
}
ROUTES = {
    ("1 Mill Lane, Tarn", "Lake Island", "driving"): {
        "status": "OK",
        "distance": {"text": "12.3 km", "value": 12_345},
        "duration": {"text": "17 mins", "value": 1_020},
    },
    ("1 Mill Lane, Tarn", "Lake Island", "walking"): {
        "status": "OK",
        "distance": {"text": "0 m", "value": 0},
        "duration": {"text": "1 min", "value": 0},
    },
    ("1 Mill Lane, Tarn", "Lake Island", "transit"): {"status": "ZERO_RESULTS"},
    ("1 Mill Lane, Tarn", "The Moon", "driving"): {"status": "NOT_FOUND"},
    ("1 Mill Lane, Tarn", "Far Away", "driving"): {"status": "MAX_ROUTE_LENGTH_EXCEEDED"},
}


class MapsServer(Service):
    """Serves PLACES and ROUTES to those who have KEY."""

    def answer(self, request: Request) -> Answer:
        """Return the answer to a request."""
        if request.query.get("key") != KEY:
            return status("REQUEST_DENIED", "The provided API key is invalid.")
        if request.path == "/maps/api/geocode/json":
            places = PLACES.get(request.query["address"], [])
            return _json({"status": "OK" if places else "ZERO_RESULTS", "results": places})
        if request.path == "/maps/api/distancematrix/json":
            way = (
                request.query["origins"],
                request.query["destinations"],
                request.query["mode"],
            )
            return _json({"status": "OK", "rows": [{"elements": [ROUTES[way]]}]})
        return Answer(status=404)


def status(name: str, message: str) -> Answer:
    """Answer with one of the service's own statuses."""
    return _json({"status": name, "error_message": message, "results": [], "rows": []})


def _json(content: object) -> Answer:
    return Answer(json.dumps(content).encode(), headers={"Content-Type": "application/json"})
