"""Files, streams and gateways between hosts over bad paths: AeroTP over UDP, sealed with the keys of both hosts.

A host has a folder with its key and the hosts that it trusts, by default `~/.config/farlink`. The page
`docs/guides/files.md` begins with two machines and no keys, `docs/guides/streams.md` goes on with programs.
"""

from __future__ import annotations

from farlink.net.addresses import UDP_PORT, Insecure
from farlink.net.files import Event, Summary, receive_files, send_files
from farlink.net.gateways import GatewayEvent, check_gateway, run_gateway
from farlink.net.handover import SentStream, StreamEvent, receive_streams, send_stream
from farlink.net.ip_bundles import IpBundleEvent, check_ip_bundle, run_ip_bundle
from farlink.net.keys import distrust, generate_key, public_key, trust, trusted
from farlink.net.log import show_log
from farlink.net.opening import STREAM_PORT, Opening, connect, listen
from farlink.net.ppp_bundles import PppBundleEvent, check_ppp_bundle, run_ppp_bundle
from farlink.net.streams import Connection, Listener, Statistics

__all__ = [
    "STREAM_PORT",
    "UDP_PORT",
    "Connection",
    "Event",
    "GatewayEvent",
    "Insecure",
    "IpBundleEvent",
    "Listener",
    "Opening",
    "PppBundleEvent",
    "SentStream",
    "Statistics",
    "StreamEvent",
    "Summary",
    "check_gateway",
    "check_ip_bundle",
    "check_ppp_bundle",
    "connect",
    "distrust",
    "generate_key",
    "listen",
    "public_key",
    "receive_files",
    "receive_streams",
    "run_gateway",
    "run_ip_bundle",
    "run_ppp_bundle",
    "send_files",
    "send_stream",
    "show_log",
    "trust",
    "trusted",
]
