"""Capture of pages: the browser, its filtering proxy, and the text and picture of a page."""
