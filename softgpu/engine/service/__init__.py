"""The compile service: one process per user and engine version that turns PTX into shared objects in the cache.

Programs that are not Python reach the compiler through it, by a socket; it is started when first needed and ends when
it was not needed for a while. ``docs/engine-cache.md`` describes the protocol.
"""
