"""A guess without earlier evaluations grows with what is known of the answer."""

from evaluations import image

from mind2web2.llm_client.image_tokens import image_tokens
from mind2web2.usage_guess import guessed_requests, guessed_tokens, mean_page_tokens
from mind2web2.utils.cache_filesys import CacheFileSys

DEPTH, FISH = "https://lake.example/depth", "https://lake.example/fish"


def test_more_links_and_longer_answers_take_more():
    """An answer without a link is judged too."""
    assert 0 < guessed_requests(0) < guessed_requests(1) < guessed_requests(9)
    small = guessed_tokens("short", 1, 100)
    for other in (("long " * 1000, 1, 100), ("short", 3, 100), ("short", 1, 5000)):
        assert guessed_tokens(*other)[0] > small[0]
    tokens_in, cached, tokens_out = small
    assert 0 < cached < tokens_in
    assert tokens_out > 0


def test_stored_pages_tell_their_size(tmp_path):
    """Text and screenshot, as much as is shown; of pages that are not stored nothing is known."""
    cache = CacheFileSys(tmp_path / "cache")
    unknown = mean_page_tokens(cache, [DEPTH], "gpt-4o")
    cache.put_web(DEPTH, "abcd" * 1000, None)
    assert mean_page_tokens(cache, [DEPTH, FISH], "gpt-4o") == 1000
    cache.put_web(FISH, "abcd" * 1_000_000, image(2200, 800))
    shown = 100_000 + image_tokens("gpt-4o", 1100, 400)
    assert mean_page_tokens(cache, [FISH], "gpt-4o") == shown
    assert mean_page_tokens(cache, [DEPTH, FISH], "gpt-4o") == (1000 + shown) / 2
    assert 1000 < unknown < shown


def test_a_tall_screenshot_is_shown_in_parts(tmp_path):
    """Down to the height that is shown."""
    cache = CacheFileSys(tmp_path / "cache")
    cache.put_web(DEPTH, "", image(1100, 3800))
    assert mean_page_tokens(cache, [DEPTH], "gpt-4o") == 2 * image_tokens("gpt-4o", 1100, 2000)


def test_a_damaged_screenshot_counts_nothing(tmp_path):
    """The text does."""
    cache = CacheFileSys(tmp_path / "cache")
    cache.put_web(DEPTH, "abcd", image())
    [screenshot] = (tmp_path / "cache").glob("*.jpg")
    screenshot.write_bytes(b"none")
    assert mean_page_tokens(cache, [DEPTH], "gpt-4o") == 1
