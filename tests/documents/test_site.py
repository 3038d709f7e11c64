"""The documentation site: it builds, and what its pages say is in the program."""

import re
import subprocess
import sys

import pytest
from axe import AXE, serious_violations
from filelock import FileLock
from patchright.async_api import async_playwright
from projects import REPOSITORY

from mind2web2.capture.browser_program import find_browser

DOCS = REPOSITORY / "docs"


@pytest.fixture(scope="session")
def site(tmp_path_factory, worker_id):
    """Build the site once for all processes of the suite; a warning is an error."""
    folder = tmp_path_factory.getbasetemp()
    built = (folder if worker_id == "master" else folder.parent) / "site"
    with FileLock(f"{built}.lock"):
        if not built.exists():
            words = ("-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html")
            command = [sys.executable, *words, str(DOCS), str(built)]
            outcome = subprocess.run(command, capture_output=True, text=True, check=False)
            assert (outcome.returncode, outcome.stderr) == (0, "")
    return built


def test_every_page_is_found_from_the_contents(site):
    """The list for language models names each, with its twin in markdown."""
    listed = set(re.findall(r"\]\(([^)]+\.md)\)", (site / "llms.txt").read_text(encoding="utf-8")))
    pages = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
    assert listed == pages
    assert all((site / name).is_file() for name in listed)


def test_pages_have_search_copy_buttons_and_a_dark_scheme(site):
    page = (site / "start.html").read_text(encoding="utf-8")
    assert all(
        part in page for part in ("copybutton.js", "theme-toggle", "search.html", "text/markdown")
    )


async def test_the_site_shows_the_report_of_the_example(site):
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=find_browser(headless=True).path)
        page = await browser.new_page()
        await page.goto((site / "index.html").as_uri())
        await page.get_by_role("link", name="the report of the example").click()
        await page.get_by_text("museum_saturday").first.wait_for()
        await browser.close()


def test_a_block_that_is_not_run_says_so_to_authors_only(site):
    """The comment is none of the page's text."""
    assert "<!-- not run: " in (DOCS / "start.md").read_text(encoding="utf-8")
    pages = [
        re.sub("<!--.*?-->", "", path.read_text(encoding="utf-8")) for path in site.rglob("*.html")
    ]
    assert not [page[:200] for page in pages if "not run:" in page]


def test_the_messages_on_the_page_of_errors_are_the_programs():
    """The parts around the words in capitals stand in the sources, in this order."""
    text = (DOCS / "errors.md").read_text(encoding="utf-8")
    messages = re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE)
    modules = REPOSITORY.glob("mind2web2*/**/*.py")
    sources = "\n".join(path.read_text(encoding="utf-8") for path in modules)
    assert len(messages) > 15
    for message in messages:
        parts = [part.strip(" :") for part in re.split(r"\b(?:[A-Z]{4,}|N|URL|\d+)\b", message)]
        wanted = r"[^\n]{0,80}?".join(re.escape(part) for part in parts if part)
        assert re.search(wanted, sources), message


# Words that readers type, and a page that answers them.
SEARCHES = {
    "rate limit": "errors.html",
    "disk full": "errors.html",
    "vLLM": "own-judge.html",
    "GRPO": "rewards.html",
    "leaderboard": "how-to.html",
    "404": "how-to.html",
    "OpenTelemetry": "how-to.html",
    "Inspect": "how-to.html",
    "pandas": "how-to.html",
    "cheaper judge": "how-to.html",
    "resume": "errors.html",
    "no space left on device": "errors.html",
    "loops forever": "errors.html",
    "invalid JSON": "errors.html",
    "SSL certificate": "errors.html",
    "changed the script": "errors.html",
    "ask one leaf again": "errors.html",
    "run was interrupted": "errors.html",
    "context length exceeded": "errors.html",
    "request too long": "errors.html",
    "score is 0": "how-to.html",
    "why did this leaf fail": "how-to.html",
    "captcha": "how-to.html",
    "cloudflare": "how-to.html",
    "paywall": "how-to.html",
    "statistically significant": "how-to.html",
    "confidence interval": "scoring.html",
    "pass@k": "scoring.html",
    "inter-annotator agreement": "how-to.html",
    "slurm": "scale.html",
    "batch API discount": "cost-and-speed.html",
    "stop when too expensive": "cost-and-speed.html",
    "excel": "file-layouts.html",
    "reward function": "rewards.html",
    "GitHub Actions": "how-to.html",
    "add a new task": "your-own-benchmark.html",
    "test my eval script": "rehearsals.html",
    "model was updated": "how-to.html",
    "wayback machine": "how-to.html",
    "cited PDF": "pages.html",
    "download the dataset": "how-to.html",
    "quickstart": "start.html",
    "LLM as a judge accuracy": "trust.html",
    "hallucinated citations": "judging.html",
    "partial credit": "scoring.html",
    "leaderboard submission": "how-to.html",
    "anthropic api key": "options.html",
    "judge with my vLLM": "own-judge.html",
    "what does it cost": "cost-and-speed.html",
    "why is this score so low": "how-to.html",
    "use as RL reward": "rewards.html",
    "run on a cluster": "scale.html",
    "compare two judges": "how-to.html",
    "weights for criteria": "scoring.html",
    "my agent crashed on one task": "how-to.html",
    "the page changed since": "how-to.html",
    "stop when budget is spent": "cost-and-speed.html",
    "different model for extraction": "judging.html",
    "hide my test questions": "how-to.html",
    "how many tasks do I need": "how-to.html",
    "run without internet": "how-to.html",
    "score without citations": "rubric-files.html",
    "add my own metric": "file-layouts.html",
    "rerun only failed answers": "errors.html",
    "share results with a colleague": "viewer.html",
    "pdf not readable": "how-to.html",
    "two labellers disagree": "how-to.html",
    "why not one call for the whole rubric": "questions.html",
    "what changed my score": "questions.html",
    "Windows": "questions.html",
    "how long are results valid": "questions.html",
    "how do I cite this": "questions.html",
}
MAX_LOOKED_AT = 3


# The pages that the search lists, best first, as its page does with the words in its address.
SEARCH = """all => all.map((words) => {
    const found = Search._performSearch(...Search._parseQuery(words));
    return found.reverse().map(([page]) => `${page}.html`);
})"""


async def test_readers_words_lead_to_the_page(site):
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=find_browser(headless=True).path)
        page = await browser.new_page()
        await page.goto(f"{(site / 'search.html').as_uri()}?q=rate+limit")
        first = page.locator("#search-results ul.search li > a").first
        shown = (await first.get_attribute("href")).split("#")[0]
        assert shown == SEARCHES["rate limit"]
        # To show the results of all takes minutes.
        results = await page.evaluate(SEARCH, list(SEARCHES), isolated_context=False)
        await browser.close()
    best = {words: pages[:MAX_LOOKED_AT] for words, pages in zip(SEARCHES, results, strict=True)}
    assert {words: best[words] for words in SEARCHES if SEARCHES[words] not in best[words]} == {}


async def test_pages_have_no_serious_violation(site):
    found = {}
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=find_browser(headless=True).path)
        for scheme in ("light", "dark"):
            # A large page takes axe-core half a minute, and has the parts and colours of these.
            for name in ("index.html", "rewards.html"):
                page = await browser.new_page(color_scheme=scheme)
                await page.goto((site / name).as_uri())
                await page.evaluate(AXE)
                violations = await serious_violations(page)
                found |= {(scheme, name): violations} if violations else {}
        await browser.close()
    assert found == {}, found
