"""From a URL to what a judge is shown of its page: the browser, its filtering proxy, and what is read."""
