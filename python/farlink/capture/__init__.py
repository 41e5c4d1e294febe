"""Captures of packets, as tcpdump, Wireshark and farlink's own engine write them."""
