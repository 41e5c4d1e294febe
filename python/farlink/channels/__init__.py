"""Channels from measurements: traces of capacity, delay and loss, read, summarised and stored."""

from farlink.lazy import modules

__getattr__, __dir__ = modules(__name__, __file__)
