"""Files, URLs, pages and logs: what the rest of the package stands on."""
