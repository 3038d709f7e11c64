"""Stored pages: the page cache, prepared pages, citations, crawl."""
