"""Looking at results: a local web app, the same as one file, and what people decide while they look."""
