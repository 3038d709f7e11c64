"""One visit to a page: virtual time, scrolling, unfolding, text, screenshot, documents."""
