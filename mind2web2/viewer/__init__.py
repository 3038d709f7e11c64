"""View results: a local web app, one file, page reviews and audits."""
