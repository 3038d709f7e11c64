"""View results: a local web app, one file, and audits."""
