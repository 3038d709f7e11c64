"""Signs that the wrong page was captured."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import SplitResult, parse_qs, urlsplit

from mind2web2.capture.models import Trouble, TroubleKind
from mind2web2.capture.said_by_pages import (
    contains_one,
    name_among,
    names_something,
    part_that_says,
    phrases,
    plain,
    vendors,
)

# Servers give these to machines, or for a while, and show people the page.
_REFUSALS = frozenset({401, 402, 403, 407, 429, 451, 503, 999})
# Marks of captcha widgets and guards, anywhere in the page.
_WIDGET_MARK = re.compile(
    "recaptcha|hcaptcha|turnstile|friendlycaptcha|arkoselabs|funcaptcha|captcha-delivery|challenge-platform"
    "|incapsula_resource|awswaf"
)

# Longer pages have something else to say than that they are not there or may not be seen.
_LONGEST_NOTICE = 1500
# Shorter ones have room for hardly anything but the notice.
_SHORT_NOTICE = 500
_BARE_LINE = 40
_LONGEST_HEADING = 120
_LONGEST_UNFILLED = 200

# "Showing 1 to 10 of 57 entries"
_SHARE_OF_ROWS = re.compile(
    r"(?:\b1\s*(?:to|-|\u2013|bis|\u00e0|a|al|\u81f3|\u5230|~)|\bshowing(?: the)?(?: first)?)\s*"
    r"(\d[\d.,]*)\s*[^\W\d]*\s*"
    r"(?:of|out of|von|de|sur|di|van|av|af|z|\u0438\u0437|(?<=\s)/(?=\s)|[\uff0c,]?\s*\u5171)\s*"
    r"(?:\w+\s)?(\d[\d.,]*)"
)

_CONSENT_HOSTS = (
    "consent.google.",
    "consent.youtube.",
    "consent.yahoo.",
    "guce.",
    "myprivacy.",
)
# Beside a phrase of consent, one of these shows that the page is about cookies.
_CONSENT_WORDS = ("cookie", "クッキー", "werbung", "advertis", "tracking", "partner")
_ASKING_WORDS = ("cookie", "クッキー", "consent")
_LOGIN_PATH = re.compile(
    r"/(?:(?:users?|members?|accounts?|customers?|wp|auth)[-_]?)?(?:log-?in|sign[-_]?in|log-?on|sso|saml2?|authwall|"
    r"einloggen|anmelden|connexion|iniciar-sesion)(?:\.\w{2,5})?(?:/|$)",
    re.IGNORECASE,
)
_GRANTING_PATH = re.compile(r"/(?:authorize|authenticate)(?:\.\w{2,5})?(?:/|$)", re.IGNORECASE)
_GRANT_ARGUMENTS = {
    "client_id",
    "redirect_uri",
    "response_type",
    "redirect",
    "return",
    "returnTo",
    "return_to",
    "next",
    "continue",
    "state",
    "SAMLRequest",
}
_LOGIN_HOST = re.compile(r"^(?:log-?in|sign-?in|sso|auth|idp|accounts?)\.", re.IGNORECASE)
_PROTOCOL_PATH = re.compile(
    r"/(?:oauth2?|openid|saml2?|adfs|authorize|servicelogin|cas)(?:/|$|-)",
    re.IGNORECASE,
)
_POLICY_PATH = re.compile(
    r"privacy|cookie|datenschutz|privacidad|confidentialit|policy|policies|legal", re.I
)
_MEMBERS_WALLS = ("paywall", "login wall")
_HOME_PATH = re.compile(
    r"^/?(?:[a-z]{2}(?:[-_][a-z]{2})?/?)?(?:(?:index|home|default)(?:\.\w{3,5})?/?)?$",
    re.I,
)
_REFERENCE = re.compile(r"reference [0-9a-f]+\.[0-9a-f]+\.")
_CHINESE_OR_JAPANESE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


@dataclass(frozen=True)
class PageObservation:
    """Observations of a capture.

    Args:
        status: of the last response to the page's own address; ``None`` where none came.
        content_type: ``None`` counts as HTML.
        text: as it is stored, or its beginning; ``text_chars`` counts all of it.
        password_fields: visible ones.
        markers: ids, classes and addresses of scripts and frames; vendors are recognised by them.
        consent_only: nothing but a consent banner was to be read.
        walls: names of overlays that ask for an account or a subscription; none of the page's
            words.
        missing_because: why a part of the page is known to be missing.
        certificate_error: the browser's words, such as ``net::ERR_CERT_DATE_INVALID``.
        frames: addresses of the frames in the page.
    """

    requested_url: str
    final_url: str
    status: int | None = None
    content_type: str | None = None
    title: str = ""
    text: str = ""
    text_chars: int = 0
    password_fields: int = 0
    markers: tuple[str, ...] = ()
    consent_only: bool = False
    walls: tuple[str, ...] = ()
    missing_because: str | None = None
    certificate_error: str | None = None
    frames: tuple[str, ...] = ()

    @cached_property
    def plain_title(self) -> str:
        """Return the title as phrases are compared with it."""
        return plain(self.title)

    @cached_property
    def heading(self) -> str:
        """Return the first heading in the same way, or a short first line."""
        lines = [line for line in self.text[:5000].splitlines() if line.strip()]
        for line in lines:
            if line.startswith("#"):
                return plain(line)
        if lines and len(lines[0]) <= _LONGEST_HEADING:
            return plain(lines[0])
        return ""

    @cached_property
    def plain_text(self) -> str:
        """Return the text in the same way; empty where it is too long to be a mere notice."""
        if max(self.text_chars, len(self.text)) > 2 * _LONGEST_NOTICE:
            return ""
        return plain(self.text)

    @cached_property
    def length(self) -> int:
        """Return how much there is to read, in characters of alphabetic writing."""
        length = max(self.text_chars, len(self.text))
        if length > 2 * _LONGEST_NOTICE:
            return length
        return len(self.plain_text) + 2 * len(_CHINESE_OR_JAPANESE.findall(self.plain_text))

    @cached_property
    def marks(self) -> str:
        """Return markers and frames, one a line, in lower case."""
        return "\n".join((*self.markers, *self.frames)).lower()

    @cached_property
    def short_lines(self) -> list[str]:
        """Return the lines of the text that may be notices, as phrases are compared with them."""
        return [plain(line) for line in self.text.splitlines() if len(line) <= _LONGEST_HEADING]

    @property
    def has_error_status(self) -> bool:
        """Tell whether the server answered with an error."""
        return self.status is not None and self.status >= 400

    @property
    def is_html(self) -> bool:
        """Tell whether there is a page with a layout, and not a file shown as text."""
        return self.content_type is None or "html" in self.content_type.lower()

    def says(self, wanted: Iterable[str]) -> bool:
        """Tell whether title or text says one of these."""
        return contains_one(f"{self.plain_text}\n{self.plain_title}", wanted)


def signs_of_trouble(observed: PageObservation) -> tuple[Trouble, ...]:
    """Return the signs of trouble, the gravest first; none of them is a reason to discard the page.

    The details are in our own words, as a page's words could deceive a reader.
    """
    troubles: list[Trouble] = []
    if observed.has_error_status:
        kind: TroubleKind = "refusal" if observed.status in _REFUSALS else "http_error"
        troubles.append(Trouble(kind=kind, detail=f"HTTP status {observed.status}"))
    if observed.certificate_error:
        troubles.append(
            Trouble(
                kind="certificate_error",
                detail=_one_word_of(observed.certificate_error),
            )
        )
    if observed.is_html:
        troubles += _of_content(observed)
    elif not observed.text.strip():
        troubles.append(Trouble(kind="empty_page", detail="no text"))
    shown = next(filter(None, map(_SHARE_OF_ROWS.search, observed.short_lines)), None)
    if shown is not None and _number(shown[1]) < _number(shown[2]):
        troubles.append(
            Trouble(kind="incomplete", detail=f"shows {shown[1]} of {shown[2]} entries")
        )
    if observed.missing_because:
        troubles.append(Trouble(kind="incomplete", detail=observed.missing_because))
    return tuple(troubles)


def _of_content(observed: PageObservation) -> list[Trouble]:
    # A wall explains the other signs: a challenge is as short as an empty page.
    challenger = _challenger(observed)
    if challenger is not None:
        return [Trouble(kind="challenge", detail=challenger)]
    if _is_consent_wall(observed):
        return [Trouble(kind="consent_wall", detail="shows little but a request for consent")]
    login = _login_wall(observed)
    if login is not None:
        return [Trouble(kind="login_wall", detail=login)]
    if not observed.has_error_status:
        lost = _soft_404(observed)
        if lost is not None:
            return [Trouble(kind="soft_404", detail=lost)]
    empty = _emptiness(observed)
    return [] if empty is None else [Trouble(kind="empty_page", detail=empty)]


def _challenger(observed: PageObservation) -> str | None:
    """Return who asks for a proof of humanity, or refuses to serve a machine."""
    if observed.length > _LONGEST_NOTICE:
        return None
    for vendor in vendors():
        # One sign is enough on a bare page; a short article about the vendor has no more than its
        # name.
        signs = (
            observed.plain_title.startswith(vendor.titles),
            _says_so(observed, vendor.name, vendor.phrases),
            any(mark in observed.marks for mark in vendor.marks),
        )
        if sum(signs) >= 2 or (any(signs) and observed.length <= _SHORT_NOTICE):
            return f"{vendor.name}: a challenge or a block"
    has_widget = _WIDGET_MARK.search(observed.marks) is not None
    if _asks_for_a_human(observed, has_widget):
        return "asks for a proof that the visitor is human, or blocks it"
    if has_widget and _is_mere_widget(observed):
        return "shows a captcha and little else"
    if not observed.has_error_status and _is_refused(observed):
        return "refuses to serve the visitor"
    return None


def _is_refused(observed: PageObservation) -> bool:
    """Tell whether a short page refuses access although its status says success."""
    if observed.length > _SHORT_NOTICE:
        return False
    titles = phrases("refused_titles")
    for title in (observed.plain_title, observed.heading):
        matching_title = name_among(title, titles)
        if matching_title is not None and not _is_subject(matching_title, observed):
            return True
    return observed.says(phrases("refused"))


def _is_subject(part: str, observed: PageObservation) -> bool:
    return names_something(part, observed.plain_title, _parts(observed.requested_url).path)


def _asks_for_a_human(observed: PageObservation, has_widget: bool) -> bool:
    titles = phrases("challenge_titles")
    titled = observed.plain_title.startswith(titles) or observed.heading.startswith(titles)
    asked = observed.says(phrases("challenge"))
    guarded = has_widget or observed.status in (403, 405, 429, 503)
    return sum((titled, asked, guarded)) >= 2 or (asked and observed.length <= _SHORT_NOTICE)


def _says_so(observed: PageObservation, vendor: str, phrases: tuple[str, ...]) -> bool:
    if vendor == "Akamai" and not _REFERENCE.search(observed.plain_text):
        # Many servers deny access in these words; theirs come with a reference.
        return False
    return observed.says(phrases)


def _is_mere_widget(observed: PageObservation) -> bool:
    # Scripts of captchas stand on many a page that is short without being a challenge.
    text = observed.plain_text.replace(_host(_parts(observed.final_url)) or "\n", "")
    beside = text
    for phrase in phrases("captcha_widget"):
        beside = beside.replace(phrase, "")
    length = len(re.sub(r"\W", "", beside))
    return length == 0 or (beside != text and length <= _BARE_LINE / 2)


def _is_consent_wall(observed: PageObservation) -> bool:
    if observed.consent_only or _host(_parts(observed.final_url)).startswith(_CONSENT_HOSTS):
        return True
    if observed.length > _LONGEST_NOTICE or not any(
        word in observed.plain_text for word in _CONSENT_WORDS
    ):
        return False
    # A banner's first words open a wall; elsewhere they are a banner beside the content.
    opening = f"{observed.plain_text[: _SHORT_NOTICE // 2]}\n{observed.plain_title}"
    if contains_one(opening, phrases("consent_opening")):
        return True
    # Policies begin as walls do, but leave the visitor no choice.
    return not _POLICY_PATH.search(_parts(observed.requested_url).path) and (
        _is_bare_request(observed)
        or (
            contains_one(opening, phrases("consent"))
            and contains_one(observed.plain_text, phrases("consent_choices"))
        )
    )


def _is_bare_request(observed: PageObservation) -> bool:
    """Tell whether a short page begins with a word of consent and ends with the choices."""
    lines = [plain(line) for line in observed.text.splitlines() if line.strip()]
    if len(lines) < 2:
        return False
    # A title may stand before the request. A sentence there is the page's own content.
    opening = lines[:1] if lines[0].endswith((".", "!", "?", "\u3002")) else lines[:2]
    return (
        observed.length <= _SHORT_NOTICE
        and any(word in line for line in opening for word in _ASKING_WORDS)
        and len(lines[-1]) <= _LONGEST_HEADING
        and contains_one(lines[-1], phrases("consent_choices"))
    )


def _login_wall(observed: PageObservation) -> str | None:
    requested = _parts(observed.requested_url)
    final = _parts(observed.final_url)
    if _is_login_address(requested):
        return _login_notice(observed) if observed.length <= _SHORT_NOTICE else None
    if _is_login_address(final) or _is_login_host(final, observed):
        return "led to a login page"
    if any(wall.startswith(_MEMBERS_WALLS) for wall in observed.walls):
        return "a request to log in or subscribe lies over the page"
    if any(contains_one(line, phrases("paywall")) for line in observed.short_lines):
        return "a request to subscribe ends the text"
    return None if observed.length > _LONGEST_NOTICE else _login_notice(observed)


def _login_notice(observed: PageObservation) -> str | None:
    is_short = observed.length <= _SHORT_NOTICE
    if observed.password_fields and is_short:
        return "shows a login form and little else"
    asks = phrases("login")
    heading = f"{observed.plain_title}\n{observed.heading}"
    has_form = contains_one(observed.plain_text, phrases("login_form"))
    is_asked = observed.says(asks) and (is_short or observed.password_fields)
    return "asks to log in" if is_asked or (has_form and contains_one(heading, asks)) else None


def _is_login_address(address: SplitResult) -> bool:
    if _LOGIN_PATH.search(address.path):
        return True
    # Documents on these protocols have such paths as well, but no client that asks.
    return bool(_GRANTING_PATH.search(address.path)) and bool(
        _GRANT_ARGUMENTS & parse_qs(address.query).keys()
    )


def _is_login_host(address: SplitResult, observed: PageObservation) -> bool:
    """Tell whether a page is of a host for logins, which have help pages too."""
    if not _LOGIN_HOST.match(_host(address)):
        return False
    is_form = bool(observed.password_fields) or observed.says(
        (*phrases("login"), *phrases("login_form"))
    )
    return is_form or bool(_PROTOCOL_PATH.search(address.path))


def _soft_404(observed: PageObservation) -> str | None:
    # Beside it there may be any menu and footer.
    titles = (observed.plain_title, observed.heading)
    if any(_names_a_lost_page(title, observed) for title in titles):
        return "its title says that the page does not exist"
    if observed.length <= _SHORT_NOTICE and observed.says(phrases("not_found")):
        return "says that the page does not exist"
    return "led to the site's home page" if _was_sent_home(observed) else None


def _names_a_lost_page(title: str, observed: PageObservation) -> bool:
    not_found_title = name_among(title, phrases("not_found_titles")) or part_that_says(
        title, phrases("not_found")
    )
    return not_found_title is not None and not _is_subject(not_found_title, observed)


def _was_sent_home(observed: PageObservation) -> bool:
    requested = _parts(observed.requested_url)
    final = _parts(observed.final_url)
    same_site = _bare_host(requested) == _bare_host(final) != ""
    is_deep = not _HOME_PATH.match(requested.path)
    is_home = (
        bool(_HOME_PATH.match(final.path))
        and not final.query
        and not final.fragment.startswith(("/", "!"))
    )
    return same_site and is_deep and is_home


def _emptiness(observed: PageObservation) -> str | None:
    if not re.search(r"\w", observed.text):
        return "no text"
    if observed.length > _LONGEST_UNFILLED:
        return None
    if observed.says(phrases("needs_javascript")):
        return "says little but that it needs JavaScript"
    if observed.says(phrases("broken")):
        return "says little but that something went wrong"
    if observed.length <= _BARE_LINE and observed.plain_text.strip(" .…") in phrases("loading"):
        return "says only that it is loading"
    return None


def _number(digits: str) -> int:
    return int(re.sub(r"\D", "", digits))


def _parts(url: str) -> SplitResult:
    """Return the parts of an address; empty ones where it is none."""
    try:
        return urlsplit(url)
    except ValueError:
        return urlsplit("")


def _host(address: SplitResult) -> str:
    return (address.hostname or "").lower()


def _bare_host(address: SplitResult) -> str:
    return re.sub(r"^(?:www\d?|m|mobile)\.", "", _host(address))


def _one_word_of(error: str) -> str:
    code = re.search(r"ERR_[A-Z_0-9]+", error)
    return code[0] if code else "the certificate is not valid"
