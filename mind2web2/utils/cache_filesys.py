"""The page cache, under the name that eval scripts import."""

from mind2web2.pages.cache import CacheFileSys

__all__ = ["CacheFileSys"]
