"""Signs that a captured page may not show what the answer's author saw; pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from urllib.parse import SplitResult, urlsplit

from mind2web2.capture.bot_walls import VENDORS, WIDGET_MARKS
from mind2web2.capture.record import Trouble

# Longer pages have something else to say than that they are not there or may not be seen.
_LONGEST_NOTICE = 1500
# Shorter ones have room for hardly anything but the notice.
_SHORT_NOTICE = 500
_BARE_LINE = 40
_LONGEST_HEADING = 120
_LONGEST_UNFILLED = 200

_CONSENT_HOSTS = ("consent.google.", "consent.youtube.", "consent.yahoo.", "guce.", "myprivacy.")
# Beside a phrase of consent, one of these shows that cookies are what the page is about.
_CONSENT_WORDS = ("cookie", "クッキー", "werbung", "advertis", "tracking", "partner")
_LOGIN_PATH = re.compile(
    r"/(?:(?:users?|members?|accounts?|customers?|wp|auth)[-_]?)?(?:log-?in|sign[-_]?in|log-?on|sso|saml2?|authwall|"
    r"authorize|authenticate|einloggen|anmelden|connexion|iniciar-sesion)(?:\.\w{2,5})?(?:/|$)",
    re.IGNORECASE,
)
_LOGIN_HOST = re.compile(r"^(?:log-?in|sign-?in|sso|auth|idp|accounts?)\.", re.IGNORECASE)
_HOME_PATH = re.compile(
    r"^/?(?:[a-z]{2}(?:[-_][a-z]{2})?/?)?(?:(?:index|home|default)(?:\.\w{3,5})?/?)?$", re.I
)
_DIVIDERS = re.compile(r"\s*(?:[|·•»:\u2013\u2014]|\s-\s)\s*")
_MARKUP = re.compile(r"\]\([^()\s]*\)|[#*_`>\[\]\\|]+")
_REFERENCE = re.compile(r"reference [0-9a-f]+\.[0-9a-f]+\.")
_CHINESE_OR_JAPANESE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


@dataclass(frozen=True)
class PageObservation:
    """What a capture saw of a page.

    Args:
        status: of the last response to the page's own address; ``None`` where none came.
        content_type: ``None`` counts as HTML.
        text: as it is stored, or its beginning; ``text_chars`` counts all of it.
        password_fields: visible ones.
        markers: ids, classes and addresses of scripts and frames, in any order: what vendors are known by.
        consent_only: nothing but a consent banner was to be read.
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
    missing_because: str | None = None
    certificate_error: str | None = None
    frames: tuple[str, ...] = ()

    @cached_property
    def plain_title(self) -> str:
        """Return the title as phrases are compared with it."""
        return _plain(self.title)

    @cached_property
    def heading(self) -> str:
        """Return the first heading in the same way, or a short first line."""
        lines = [line for line in self.text[:5000].splitlines() if line.strip()]
        headings = [line for line in lines if line.startswith("#")]
        opening = (headings or lines or [""])[0]
        return _plain(opening) if headings or len(opening) <= _LONGEST_HEADING else ""

    @cached_property
    def plain_text(self) -> str:
        """Return the text in the same way; empty where it is too long to be a mere notice."""
        if max(self.text_chars, len(self.text)) > 2 * _LONGEST_NOTICE:
            return ""
        return _plain(self.text)

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

    @property
    def is_html(self) -> bool:
        """Tell whether there is a page with a layout, and not a file shown as text."""
        return self.content_type is None or "html" in self.content_type.lower()

    def says(self, phrases: Iterable[str]) -> bool:
        """Tell whether title or text contains a phrase."""
        return any(phrase in self.plain_text or phrase in self.plain_title for phrase in phrases)


def signs_of_trouble(observed: PageObservation) -> tuple[Trouble, ...]:
    """Return what looks wrong, the gravest first; nothing of it is a reason to throw the page away.

    The details are in our own words, as a page's could be made to deceive whoever reads them.
    """
    found: list[Trouble] = []
    if observed.status is not None and observed.status >= 400:
        found.append(Trouble(kind="http_error", detail=f"HTTP status {observed.status}"))
    if observed.certificate_error:
        found.append(Trouble(kind="certificate_error", detail=_one_word_of(observed.certificate_error)))
    if observed.is_html:
        found += _of_content(observed)
    elif not observed.text.strip():
        found.append(Trouble(kind="empty_page", detail="no text"))
    if observed.missing_because:
        found.append(Trouble(kind="incomplete", detail=observed.missing_because))
    return tuple(found)


def _of_content(observed: PageObservation) -> list[Trouble]:
    # What bars the way explains the rest: a challenge is as short as an empty page.
    challenger = _challenger(observed)
    if challenger is not None:
        return [Trouble(kind="challenge", detail=challenger)]
    if _is_consent_wall(observed):
        return [Trouble(kind="consent_wall", detail="shows little but a request for consent")]
    login = _login_wall(observed)
    if login is not None:
        return [Trouble(kind="login_wall", detail=login)]
    if (observed.status or 200) < 400:
        lost = _soft_404(observed)
        if lost is not None:
            return [Trouble(kind="soft_404", detail=lost)]
    empty = _emptiness(observed)
    return [] if empty is None else [Trouble(kind="empty_page", detail=empty)]


def _challenger(observed: PageObservation) -> str | None:
    """Return who asks for a proof of humanity, or refuses to serve a machine."""
    if observed.length > _LONGEST_NOTICE:
        return None
    for vendor in VENDORS:
        # One sign is enough on a bare page; a short article about the vendor has no more than its name.
        signs = (
            observed.plain_title.startswith(vendor.titles),
            _says_so(observed, vendor.name, vendor.phrases),
            any(mark in observed.marks for mark in vendor.marks),
        )
        if sum(signs) >= 2 or (any(signs) and observed.length <= _SHORT_NOTICE):
            return f"{vendor.name}: a challenge or a block"
    has_widget = any(mark in observed.marks for mark in WIDGET_MARKS)
    if _asks_for_a_human(observed, has_widget):
        return "asks for a proof that the visitor is human, or blocks it"
    if has_widget and _length_beside_widget(observed) <= _BARE_LINE / 2:
        return "shows a captcha and little else"
    return None


def _asks_for_a_human(observed: PageObservation, has_widget: bool) -> bool:
    titles = _phrases("challenge_titles")
    titled = observed.plain_title.startswith(titles) or observed.heading.startswith(titles)
    asked = observed.says(_phrases("challenge"))
    guarded = has_widget or observed.status in (403, 405, 429, 503)
    return sum((titled, asked, guarded)) >= 2 or (asked and observed.length <= _SHORT_NOTICE)


def _says_so(observed: PageObservation, vendor: str, phrases: tuple[str, ...]) -> bool:
    if vendor == "Akamai" and not _REFERENCE.search(observed.plain_text):
        # Many servers deny access in these words; theirs come with a reference.
        return False
    return observed.says(phrases)


def _length_beside_widget(observed: PageObservation) -> int:
    text = observed.plain_text
    for phrase in _phrases("captcha_widget"):
        text = text.replace(phrase, "")
    return len(re.sub(r"\W", "", text))


def _is_consent_wall(observed: PageObservation) -> bool:
    if observed.consent_only or _host(_parts(observed.final_url)).startswith(_CONSENT_HOSTS):
        return True
    if observed.length > _LONGEST_NOTICE or not any(word in observed.plain_text for word in _CONSENT_WORDS):
        return False
    # A banner's first words open a wall; elsewhere they are a banner beside the content.
    opening = observed.plain_text[: _SHORT_NOTICE // 2]
    return any(phrase in opening or phrase in observed.plain_title for phrase in _phrases("consent"))


def _login_wall(observed: PageObservation) -> str | None:
    requested, final = _parts(observed.requested_url), _parts(observed.final_url)
    if _is_login_address(requested):
        return None
    if _is_login_address(final):
        return "led to a login page"
    if observed.length > _LONGEST_NOTICE:
        return None
    if observed.password_fields and observed.length <= _SHORT_NOTICE:
        return "shows a login form and little else"
    if observed.says(_phrases("login")) and (observed.password_fields or observed.length <= _SHORT_NOTICE):
        return "asks to log in"
    heading = f"{observed.plain_title}\n{observed.heading}"
    return "asks to log in" if any(phrase in heading for phrase in _phrases("login")) else None


def _is_login_address(address: SplitResult) -> bool:
    return bool(_LOGIN_PATH.search(address.path) or _LOGIN_HOST.match(_host(address)))


def _soft_404(observed: PageObservation) -> str | None:
    if observed.length <= _LONGEST_NOTICE:
        if _names_a_lost_page(observed.plain_title) or _names_a_lost_page(observed.heading):
            return "its title says that the page does not exist"
        if observed.length <= _SHORT_NOTICE and observed.says(_phrases("not_found")):
            return "says that the page does not exist"
    return "led to the site's home page" if _was_sent_home(observed) else None


def _names_a_lost_page(title: str) -> bool:
    parts = [part.strip(" .!?…") for part in (title, *_DIVIDERS.split(title))]
    names = {name.strip(" .!?…") for name in _phrases("not_found_titles")}
    return any(part in names for part in parts) or any(phrase in title for phrase in _phrases("not_found"))


def _was_sent_home(observed: PageObservation) -> bool:
    requested, final = _parts(observed.requested_url), _parts(observed.final_url)
    same_site = _bare_host(requested) == _bare_host(final) != ""
    is_deep = not _HOME_PATH.match(requested.path)
    is_home = (
        bool(_HOME_PATH.match(final.path)) and not final.query and not final.fragment.startswith(("/", "!"))
    )
    return same_site and is_deep and is_home


def _emptiness(observed: PageObservation) -> str | None:
    if not re.search(r"\w", observed.text):
        return "no text"
    if observed.length <= _LONGEST_UNFILLED and observed.says(_phrases("needs_javascript")):
        return "says little but that it needs JavaScript"
    if observed.length <= _BARE_LINE and observed.plain_text.strip(" .…") in _phrases("loading"):
        return "says only that it is loading"
    return None


def _parts(url: str) -> SplitResult:
    """Return the parts of an address; empty ones where it is none."""
    try:
        return urlsplit(url)
    except ValueError:
        return urlsplit("")


@cache
def _phrases(name: str) -> tuple[str, ...]:
    """Return the phrases in ``phrases/<name>.txt``, in the form in which pages are compared with them."""
    text = files("mind2web2.capture").joinpath("phrases", f"{name}.txt").read_text(encoding="utf-8")
    return tuple(line for line in text.splitlines() if line and not line.startswith("# "))


def _host(address: SplitResult) -> str:
    return (address.hostname or "").lower()


def _bare_host(address: SplitResult) -> str:
    return re.sub(r"^(?:www\d?|m|mobile)\.", "", _host(address))


def _plain(text: str) -> str:
    text = unicodedata.normalize("NFKC", text).replace("\u2019", "'").replace("\u2018", "'")
    return " ".join(_MARKUP.sub(" ", text).lower().split())


def _one_word_of(error: str) -> str:
    code = re.search(r"ERR_[A-Z_0-9]+", error)
    return code[0] if code else "the certificate is not valid"
