"""URL functions, under the name that eval scripts import.

Calls that they do not take are reported.
"""

from mind2web2.urls import parts
from mind2web2.urls.markdown import URLs, regex_find_urls
from mind2web2.utils.api_misuse import checked_call

__all__ = [
    "URLs",
    "normalize_url_for_browser",
    "normalize_url_simple",
    "regex_find_urls",
    "remove_utm_parameters",
]

normalize_url_for_browser = checked_call(parts.normalize_url_for_browser)
normalize_url_simple = checked_call(parts.normalize_url_simple)
remove_utm_parameters = checked_call(parts.remove_utm_parameters)
