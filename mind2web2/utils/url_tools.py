"""URL functions, under the name that eval scripts import."""

from mind2web2.urls.markdown import URLs, regex_find_urls
from mind2web2.urls.parts import (
    normalize_url_for_browser,
    normalize_url_simple,
    remove_utm_parameters,
)

__all__ = [
    "URLs",
    "normalize_url_for_browser",
    "normalize_url_simple",
    "regex_find_urls",
    "remove_utm_parameters",
]
