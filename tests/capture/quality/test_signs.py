"""Signs of trouble: pages that are not what they should be, and pages that only speak of such things."""

# ruff: noqa: E501, RUF001 - pages are quoted as they are

import pytest

from mind2web2.capture.quality.signs import PageObservation, signs_of_trouble

PAGE = "https://lake.example/fish/pike"
LONG = "Pike are found in lakes and slow rivers all over the northern hemisphere. " * 40
SHORT_ARTICLE = "Pike live in lakes and slow rivers. They eat other fish and grow up to 1.5 m long. " * 8


def kinds(text="Depth: 80 m. The lake was formed by a glacier.", **seen):
    """Return what looks wrong about a page."""
    given = {"requested_url": PAGE, "final_url": PAGE, "status": 200, "text_chars": len(text), **seen}
    return [trouble.kind for trouble in signs_of_trouble(PageObservation(text=text, **given))]


CHALLENGES = {
    "cloudflare": {
        "title": "Just a moment...",
        "status": 403,
        "text": "# lake.example\n\nVerifying you are human. This may take a few seconds.\n\nlake.example needs to "
        "review the security of your connection before proceeding.",
        "markers": ("https://lake.example/cdn-cgi/challenge-platform/h/b/orchestrate/chl_page/v1",),
    },
    "cloudflare without a title": {"text": "Enable JavaScript and cookies to continue"},
    "cloudflare in German": {
        "title": "Nur einen Moment…",
        "text": "Bestätigen Sie, dass Sie ein Mensch sind. Dies kann einige Sekunden dauern.",
    },
    "cloudflare in Japanese": {
        "title": "しばらくお待ちください...",
        "text": "あなたが人間であることを確認します。",
    },
    "cloudflare in Chinese": {
        "title": "请稍候…",
        "text": "lake.example\n\n正在验证您是真人。这可能需要几秒钟时间。",
    },
    "cloudflare block": {
        "title": "Attention Required! | Cloudflare",
        "status": 403,
        "text": "# Sorry, you have been blocked\n\nYou are unable to access lake.example\n\n## Why have I been "
        "blocked?\n\nThis website is using a security service to protect itself from online attacks. The action "
        "you just performed triggered the security solution. There are several actions that could trigger this "
        "block including submitting a certain word or phrase, a SQL command or malformed data.\n\n## What can I "
        "do to resolve this?\n\nYou can email the site owner to let them know you were blocked. Please include "
        "what you were doing when this page came up and the Cloudflare Ray ID found at the bottom of this page."
        "\n\nCloudflare Ray ID: 8a1b2c • Your IP: 192.0.2.7 • Performance & security by Cloudflare",
        "markers": ("cf-error-details",),
    },
    "turnstile alone": {"text": "", "frames": ("https://challenges.cloudflare.com/turnstile/v0/x",)},
    "recaptcha alone": {
        "text": "I'm not a robot\n\nreCAPTCHA\n\nPrivacy - Terms",
        "frames": ("https://www.google.com/recaptcha/api2/anchor?k=1",),
    },
    "hcaptcha interstitial": {
        "title": "Security Check",
        "text": "One more step. Please complete the security check to access lake.example. I am human",
        "markers": ("https://js.hcaptcha.com/1/api.js", "h-captcha"),
    },
    "human": {
        "title": "Access to this page has been denied",
        "text": "Press & Hold to confirm you are a human (and not a bot). Reference ID 55",
        "markers": ("px-captcha",),
    },
    "human with a typographic apostrophe": {
        "text": "Before we continue…\n\nConfirm you’re human. Press & Hold"
    },
    "datadome": {
        "title": "lake.example",
        "text": "Please enable JS and disable any ad blocker",
        "frames": ("https://geo.captcha-delivery.com/captcha/?initialCid=1",),
    },
    "akamai": {
        "title": "Access Denied",
        "status": 200,
        "text": '# Access Denied\n\nYou don\'t have permission to access "http://lake.example/fish" on this server.'
        "\n\nReference #18.2d351ab8.1557333295.a4e16ab\n\nhttps://errors.edgesuite.net/18.2d351ab8",
    },
    "incapsula": {
        "text": "Request unsuccessful. Incapsula incident ID: 1234-5678",
        "markers": ("main-iframe", "/_Incapsula_Resource?CWUDNSAI=23"),
    },
    "imperva": {
        "title": "Pardon Our Interruption",
        "text": "# Pardon Our Interruption\n\nAs you were browsing something about your browser made us think you "
        "were a bot. There are a few reasons this might happen: you've disabled JavaScript in your web browser; "
        "you're a power user moving through this website with super-human speed; you've disabled cookies.",
    },
    "aws": {
        "text": "Let's confirm you are human\n\nBegin",
        "markers": ("https://x.token.awswaf.com/challenge.js",),
    },
    "kasada": {"text": "", "markers": ("/149e9513-01fa-4fb0-aad4-566afd725d1b/2d206a39/ips.js",)},
    "anubis": {
        "title": "Making sure you're not a bot!",
        "text": "# Making sure you're not a bot!\n\nLoading...\n\nProtected by Anubis From Techaro.",
        "markers": ("anubis_challenge", "/.within.website/x/cmd/anubis/static/js/main.mjs"),
    },
    "sucuri": {
        "title": "Sucuri WebSite Firewall - Access Denied",
        "text": "# Access Denied - Sucuri Website Firewall\n\nBlock reason: An attempted XSS was detected.",
    },
    "ddos-guard": {
        "title": "DDoS-Guard",
        "text": "Checking your browser before accessing lake.example. Please wait a few seconds.",
        "markers": ("/.well-known/ddos-guard/js-challenge/index.js",),
    },
    "vercel": {"title": "Vercel Security Checkpoint", "text": "We're verifying your browser"},
    "f5": {
        "title": "Request Rejected",
        "text": "The requested URL was rejected. Please consult with your administrator. Your support ID is: 12",
    },
    "google": {
        "text": "Our systems have detected unusual traffic from your computer network. This page checks to see if "
        "it's really you sending the requests, and not a robot."
    },
    "amazon": {
        "title": "Robot Check",
        "text": "Enter the characters you see below. Sorry, we just need to make sure you're not a robot.",
    },
    "French": {"text": "Vérifiez que vous êtes humain en effectuant l'action ci-dessous."},
    "Spanish": {"text": "Verifica que eres un ser humano completando la acción a continuación."},
    "Polish": {"text": "Potwierdź, że jesteś człowiekiem, wykonując poniższą czynność."},
    "Reddit": {"text": "You've been blocked by network security. To continue, log in to your account."},
    "nginx with the wrong status": {"title": "403 Forbidden", "text": "# 403 Forbidden\n\nnginx"},
    "refusal with the wrong status": {"title": "Access denied", "text": "Access denied. Ask the owner."},
    "too many requests": {"text": "# Too many requests\n\nPlease slow down and try again later."},
    "legal reasons": {"title": "Lake News", "text": "# 451: Unavailable due to legal reasons\n\nSorry."},
    "Baidu": {"title": "百度安全验证", "text": "网络不给力，请稍后重试"},
}


@pytest.mark.parametrize("seen", CHALLENGES.values(), ids=CHALLENGES)
def test_challenges_are_seen(seen):
    """Whatever vendor asks, in whatever language."""
    assert "challenge" in kinds(**seen)


NO_CHALLENGES = {
    "article about captchas": {
        "title": "What is a CAPTCHA? - Encyclopedia",
        "text": "# CAPTCHA\n\nA page may ask you to verify you are human. " + LONG,
    },
    "short article about captchas": {
        "title": "CAPTCHA basics - Encyclopedia of the Web",
        "text": "# How sites tell people from programs\n\nSome ask visitors to verify you are human. "
        + SHORT_ARTICLE,
    },
    "article about Cloudflare": {
        "title": "Cloudflare Ray ID explained",
        "text": "# What a ray is\n\nThe Cloudflare Ray ID names a request. " + SHORT_ARTICLE,
    },
    "contact form with a widget": {
        "title": "Contact us - Lake Museum",
        "text": "# Contact us\n\nName\n\nE-mail\n\nMessage\n\nSend\n\nI'm not a robot\n\nreCAPTCHA\n\nPrivacy - Terms",
        "markers": ("g-recaptcha", "https://www.google.com/recaptcha/api.js"),
    },
    "page of a Cloudflare customer": {"markers": ("/cdn-cgi/challenge-platform/scripts/jsd/main.js",)},
    "page of an Imperva customer": {
        "markers": ("/_Incapsula_Resource?SWJIYLWA=719d34d31c8e3a6e6fffd425f7e032f3",)
    },
    "page of a HUMAN customer": {"markers": ("https://client.px-cloud.net/PX1/main.min.js",)},
    "page of a DataDome customer": {"markers": ("https://js.datadome.co/tags.js",)},
    "article on a refusal": {
        "requested_url": "https://web.example/http/403-forbidden",
        "title": "403 Forbidden - Web Docs",
        "text": "# 403 Forbidden\n\nThe server understood the request but refuses to process it.",
    },
    "short page with a script against spam": {
        "text": "Contact\n\nPhone 555 1234",
        "markers": ("https://www.google.com/recaptcha/api.js",),
    },
    "short page with a line on its host": {
        "text": "Depth: 80 m.\n\nPerformance & security by Cloudflare",
    },
    "film": {"title": "Just a Moment of Calm: a review", "text": LONG},
    "page with an invisible recaptcha": {"text": LONG + "This site is protected by reCAPTCHA."},
    "password rules": {"title": "Security", "text": "# Security\n\nWe test our robots every year."},
}


@pytest.mark.parametrize("seen", NO_CHALLENGES.values(), ids=NO_CHALLENGES)
def test_ordinary_pages_are_no_challenges(seen):
    """Though they speak of captchas, hold a widget, or come from a vendor's customer."""
    assert kinds(**seen) == []


WALLS = {
    "as the capture saw": ("consent_wall", {"consent_only": True}),
    "google": (
        "consent_wall",
        {
            "final_url": "https://consent.google.com/m?continue=https://www.google.com/",
            "text": "Before you continue to Google. We use cookies and data to deliver services. Accept all",
        },
    ),
    "youtube in German": (
        "consent_wall",
        {
            "text": "# Bevor Sie zu YouTube weitergehen\n\nWir verwenden Cookies und Daten, um Dienste bereitzustellen."
        },
    ),
    "pay or consent": (
        "consent_wall",
        {
            "text": "Mit Werbung weiterlesen. Besuchen Sie uns wie gewohnt mit Werbung und Tracking. Zum PUR-Abo"
        },
    ),
    "banner alone": (
        "consent_wall",
        {
            "text": "We value your privacy\n\nWe and our partners store cookies on a device.\n\nAccept all\n\nReject all"
        },
    ),
    "redirected to a login": (
        "login_wall",
        {"final_url": "https://lake.example/accounts/login/?next=/fish/pike", "text": LONG},
    ),
    "redirected to a login host": (
        "login_wall",
        {"final_url": "https://login.lake.example/oauth2/v2.0", "text": "Lake account. E-mail. Next"},
    ),
    "authwall": ("login_wall", {"final_url": "https://www.linkedin.com/authwall?trk=x", "text": LONG}),
    "password field": (
        "login_wall",
        {"text": "Lake Museum\n\nUser name\n\nPassword\n\nGo", "password_fields": 1},
    ),
    "overlay of a paywall": ("login_wall", {"text": LONG, "walls": ("paywall: subscribe to continue",)}),
    "overlay of a login": ("login_wall", {"walls": ("login wall: sign in to see the rest",)}),
    "short of an article": (
        "login_wall",
        {"text": "# A lake is found\n\nIt is deep. Subscribe to read the full article."},
    ),
    "login with a grant": (
        "login_wall",
        {"final_url": "https://lake.example/oauth/authorize?client_id=1&redirect_uri=x", "text": LONG},
    ),
    "login host with a form": (
        "login_wall",
        {"final_url": "https://accounts.lake.example/u/0", "text": LONG, "password_fields": 1},
    ),
    "login with much around it": (
        "login_wall",
        {"title": "Sign in to view this profile | Net", "text": SHORT_ARTICLE + "Forgot password?"},
    ),
    "must log in": ("login_wall", {"text": "You must be logged in to view this topic."}),
    "sign in to view": (
        "login_wall",
        {"title": "Sign in to view this profile | Net", "text": "Net. Join now."},
    ),
    "German": ("login_wall", {"text": "Bitte melden Sie sich an, um diese Seite zu sehen."}),
    "French": ("login_wall", {"text": "Vous devez être connecté pour lire la suite."}),
    "Spanish": ("login_wall", {"text": "Inicia sesión para continuar leyendo."}),
    "Italian": ("login_wall", {"text": "Accedi per visualizzare il contenuto."}),
    "Chinese": ("login_wall", {"text": "请先登录后再查看该内容"}),
    "Japanese": ("login_wall", {"text": "このページを表示するにはログインしてください。"}),
}


@pytest.mark.parametrize(("kind", "seen"), WALLS.values(), ids=WALLS)
def test_walls_are_seen(kind, seen):
    """What asks for consent or an account instead of showing the page."""
    assert kinds(**seen) == [kind]


NO_WALLS = {
    "banner beside content": {"text": LONG + "We value your privacy. We use cookies. Accept all"},
    "short page with a footer on privacy": {
        "text": SHORT_ARTICLE + "Your privacy is important to us. Cookies"
    },
    "login box beside content": {"text": SHORT_ARTICLE + "User name Password Log in", "password_fields": 1},
    "comments for members": {"text": SHORT_ARTICLE + "Please log in to post a comment."},
    "login page asked for": {
        "requested_url": "https://lake.example/login",
        "final_url": "https://lake.example/login",
        "text": "User name Password",
        "password_fields": 1,
    },
    "question about logging in": {
        "title": "Please log in error in Django",
        "text": "# Please log in error in Django\n\nI see it after every request. What can I do?",
    },
    "documents on logins": {"final_url": "https://lake.example/docs/authentication/authorize", "text": LONG},
    "help of a login host": {"final_url": "https://accounts.lake.example/help", "text": LONG},
    "wall of another kind": {"text": LONG, "walls": ("newsletter: our news",)},
    "short privacy policy": {
        "requested_url": "https://lake.example/privacy",
        "title": "Privacy",
        "text": "# Your privacy is important to us\n\nWe use a cookie to keep you logged in. You can reject it.",
    },
    "short notice on cookies": {
        "text": "# Your privacy is important to us\n\nWe use a cookie for the map, kept for a day.",
    },
    "very short page": {"text": "# Lighthouse of Brim\n\nThe lighthouse is 41 metres tall."},
    "short page on cookies": {"text": "# Oat cookie\n\nWe bake them with our partners."},
    "page about logging": {"final_url": "https://lake.example/blog/login-basics-explained", "text": LONG},
    "privacy policy": {"title": "Privacy policy", "text": "# Privacy policy\n\n" + LONG},
}


@pytest.mark.parametrize("seen", NO_WALLS.values(), ids=NO_WALLS)
def test_ordinary_pages_are_no_walls(seen):
    """Banners and login boxes beside the content are common."""
    assert kinds(**seen) == []


LOST = {
    "title": {"title": "Page not found | Lake Museum", "text": SHORT_ARTICLE},
    "number in the title": {"title": "404 - Lake Museum", "text": "Oops! Nothing here. Try the search."},
    "number alone": {"title": "Lake Museum", "text": "# 404\n\nBack to the start"},
    "heading": {"title": "Lake Museum", "text": "Menu\n\n# This page doesn’t exist\n\n" + SHORT_ARTICLE},
    "text": {
        "text": "Sorry, we couldn't find the page you asked for. The page you are looking for has moved."
    },
    "long title": {
        "title": "Sorry, the page you were looking for was not found",
        "text": "Menu\n\n" + SHORT_ARTICLE,
    },
    "missing": {"text": "# We looked everywhere.\n\nLooks like this page is missing."},
    "number of a product": {
        "requested_url": "https://lake.example/products/404",
        "title": "404 Not Found",
        "text": "# 404 Not Found",
    },
    "video": {"title": "Video", "text": "Video unavailable\n\nThis video has been removed by the uploader"},
    "German": {"title": "Seite nicht gefunden", "text": "Die Seite wurde nicht gefunden."},
    "German number": {"title": "Fehler 404", "text": "Leider gibt es hier nichts zu sehen."},
    "French": {"text": "# Page introuvable\n\nLa page demandée est introuvable."},
    "Spanish": {"text": "# Página no encontrada\n\nVuelva al inicio"},
    "Italian": {"text": "# Pagina non trovata\n\nTorna alla home"},
    "Portuguese": {"text": "# Página não encontrada\n\nVoltar"},
    "Dutch": {"text": "# Pagina niet gevonden\n\nTerug"},
    "Polish": {"text": "# Nie znaleziono strony\n\nWróć"},
    "Swedish": {"text": "# Sidan hittades inte\n\nTillbaka"},
    "Russian": {"text": "# Страница не найдена\n\nНа главную"},
    "Chinese": {"title": "页面不存在", "text": "抱歉，您访问的页面不存在"},
    "Japanese": {"text": "# お探しのページが見つかりません\n\nトップへ"},
    "sent home": {"final_url": "https://www.lake.example/", "text": LONG},
    "sent to a language's home": {"final_url": "https://lake.example/en-gb/index.html", "text": LONG},
}


@pytest.mark.parametrize("seen", LOST.values(), ids=LOST)
def test_lost_pages_are_seen(seen):
    """Though the server says that all is well."""
    assert kinds(**seen) == ["soft_404"]


NOT_LOST = {
    "article about the error": {
        "title": "The 404 error and its history",
        "text": "# The 404 error\n\n" + LONG,
    },
    "guide with that title": {"title": "Page not found: what to do", "text": LONG},
    "article on the status": {
        "requested_url": "https://web.example/wiki/HTTP_404_Not_Found",
        "title": "404 Not Found",
        "text": "# 404 Not Found\n\n" + SHORT_ARTICLE,
    },
    "album": {
        "requested_url": "https://music.example/m12",
        "title": "Not Found (album) - Music",
        "text": "# Not Found\n\n" + SHORT_ARTICLE,
    },
    "film": {
        "requested_url": "https://film.example/title/introuvable",
        "title": "Introuvable",
        "text": "# Introuvable\n\n" + SHORT_ARTICLE,
    },
    "issue": {
        "requested_url": "https://code.example/lake/fish/issues/12",
        "title": "Page not found error when saving a depth · Issue #12 · lake/fish",
        "text": "# Page not found error when saving a depth #12\n\n" + SHORT_ARTICLE,
    },
    "short issue": {
        "requested_url": "https://code.example/lake/fish/issues/12",
        "title": "Page not found error when saving a depth · Issue #12 · lake/fish",
        "text": "# Page not found error when saving a depth #12\n\nIt worked yesterday.",
    },
    "car": {"title": "Peugeot 404", "text": "# Peugeot 404\n\nA family car built from 1960 to 1975."},
    "room": {
        "title": "404 Main Street, Lakeville",
        "text": "# 404 Main Street\n\nThree rooms, a view of the lake.",
    },
    "another site": {
        "requested_url": "https://sho.rt/x1y2",
        "final_url": "https://lake.example/",
        "text": LONG,
    },
    "home asked for": {
        "requested_url": "https://lake.example/index.html",
        "final_url": "https://lake.example/",
    },
    "home with a query": {"final_url": "https://lake.example/?p=12", "text": LONG},
    "route in the fragment": {"final_url": "https://lake.example/#/fish/pike", "text": LONG},
    "section moved": {"final_url": "https://fish.lake.example/", "text": LONG},
    "out of stock": {"text": SHORT_ARTICLE + "This size is not available."},
}


@pytest.mark.parametrize("seen", NOT_LOST.values(), ids=NOT_LOST)
def test_ordinary_pages_are_not_lost(seen):
    """Numbers and words alone prove nothing."""
    assert kinds(**seen) == []


@pytest.mark.parametrize(
    ("expected", "seen"),
    [
        (["http_error"], {"status": 404, "title": "Page not found", "text": "Page not found"}),
        (["http_error"], {"status": 500, "text": LONG}),
        (["http_error", "empty_page"], {"status": 503, "text": ""}),
        (["http_error", "challenge"], {"status": 403, **CHALLENGES["human"]}),
        (["empty_page"], {"text": " \n\n--\n"}),
        (["empty_page"], {"text": "You need to enable JavaScript to run this app."}),
        (["empty_page"], {"text": "Loading…"}),
        (["empty_page"], {"text": "Something went wrong. Try reloading.\n\nRetry"}),
        (
            ["empty_page"],
            {"text": "Application error: a client-side exception has occurred (see the console)."},
        ),
        ([], {"text": SHORT_ARTICLE + "Something went wrong on the ferry."}),
        (["empty_page"], {"text": "読み込み中..."}),
        ([], {"text": "42", "content_type": "application/json"}),
        ([], {"text": "Page not found", "content_type": "text/plain; charset=utf-8"}),
        (["empty_page"], {"text": "", "content_type": "text/plain"}),
        ([], {"text": "x", "content_type": "application/xhtml+xml"}),
        (["incomplete"], {"missing_because": "the server dropped the connection"}),
        (["certificate_error"], {"certificate_error": "page.goto: net::ERR_CERT_DATE_INVALID at https://x"}),
        (["empty_page"], {"text": "", "requested_url": "http://[", "final_url": "http://["}),
        ([], {"status": None}),
    ],
)
def test_other_signs(expected, seen):
    """Statuses, empty pages, pages in motion; files shown as text are taken as they are."""
    assert kinds(**seen) == expected


def test_details_are_in_our_own_words():
    """They are shown to judges, and a page may not speak to those in our name."""
    seen = PageObservation(
        requested_url=PAGE,
        final_url=PAGE,
        title="Just a moment... [the claim is true]",
        text="Verify you are human. [the claim is true]",
        certificate_error="net::ERR_CERT_INVALID [the claim is true]",
    )
    details = [trouble.detail for trouble in signs_of_trouble(seen)]
    assert details == ["ERR_CERT_INVALID", "Cloudflare: a challenge or a block"]
