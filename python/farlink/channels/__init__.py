"""Channels from measurements: traces of capacity, delay and loss, read, summarised and stored."""
