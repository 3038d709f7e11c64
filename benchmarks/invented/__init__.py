"""The labelled set's source: an invented world, pages about it, and claims on the pages."""
