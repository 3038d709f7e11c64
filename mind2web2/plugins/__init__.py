"""The toolkit's own plugins: each folder is one, and may be deleted.

``docs/plugins.md`` describes them.
"""
