"""AeroTP in captures: which segments were lost, beside what the simulated channel lost, and where a capture cannot tell."""

from __future__ import annotations

import struct

import numpy as np
import pytest

import farlink
from farlink.capture import aerotp, connections, files
from farlink.errors import CaptureError


def scenario(channel, transport=None, *, bytes_=4e5, seed=1):
    return {
        "title": "AeroTP over a lossy link",
        "duration_s": 60,
        "runs": 1,
        "seed": seed,
        "link": {"rate_bps": 1e6, "delay_s": 0.1, "channel": channel, "return": {"channel": {"kind": "none"}}},
        "transport": {"a": {"kind": "aerotp", **(transport or {})}},
        "flow": {"f": {"transport": "a", "traffic": {"kind": "file", "bytes": bytes_}}},
    }


def captured(description):
    capture = files.parse(farlink.trace_run(description, pcap=True).pcapng, "run.pcapng")
    return connections.chosen(connections.connections(capture), capture)


def lost_packets(description, connection):
    """Packets that the channel lost, of all kinds."""
    rows = farlink.run(description).rows
    return round(rows["loss_fraction"][0] * len(connection.segments[connection.sender]))


LOSSES = {
    "none": ({"kind": "none"}, None),
    "few": ({"kind": "loss", "loss": 0.03}, None),
    "many": ({"kind": "loss", "loss": 0.3}, None),
    "bursts": ({"kind": "gilbert-elliott", "p_good_to_bad": 0.02, "p_bad_to_good": 0.3, "loss_good": 0, "loss_bad": 1}, None),
    "outages": ({"kind": "outage", "period_s": 10, "down_s": 2}, None),
    "near-reliable": ({"kind": "loss", "loss": 0.05}, {"mode": "near-reliable"}),
    "parity": ({"kind": "loss", "loss": 0.05}, {"fec_share": 0.1}),
    "deadline": ({"kind": "loss", "loss": 0.05}, {"rate_bps": 9e5, "deadline_s": 5}),
}


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", LOSSES)
def test_losses_are_those_of_the_channel(name, seed):
    channel, transport = LOSSES[name]
    description = scenario(channel, transport, seed=seed, bytes_=3e6 if name == "outages" else 4e5)
    lost = checked_losses(description)
    assert (lost == 0) == (name == "none")


@pytest.mark.parametrize("seed", [1, 2])
def test_distances_between_blocks_are_read(seed):
    """Where MACKs are limited, they list blocks in the short form ([A11])."""
    description = scenario({"kind": "loss", "loss": 0.1}, {"rate_bps": 9e5}, seed=seed, bytes_=2e6)
    description["link"]["return"]["rate_bps"] = 5e3
    capture = files.parse(farlink.trace_run(description, pcap=True).pcapng, "run.pcapng")
    macks = [packet.data for packet in capture.packets if packet.data[33] & 0x20]
    assert sum(bool(data[44] & 0x10) and len(data) > 60 for data in macks) > 20
    assert checked_losses(description) > 100


def checked_losses(description):
    connection = captured(description)
    flow = connection.forward
    assert connection.untold == ""
    assert flow.time_s.size > 100
    assert not (flow.is_lost & flow.is_arrived).any()

    lost, true = int(flow.is_lost.sum()), lost_packets(description, connection)
    untold = flow.time_s.size - lost - int(flow.is_arrived.sum())
    # Packets without data may be lost as well: openings, questions and the end.
    empty = len(connection.segments[connection.sender]) - flow.time_s.size
    assert true - untold - empty <= lost <= true
    # Most is told, even if a third is lost.
    assert untold <= 0.15 * flow.time_s.size
    return lost


def test_segments_that_arrived_have_all_the_stream():
    flow = captured(scenario({"kind": "loss", "loss": 0.1})).forward
    kept = ~flow.is_lost
    reached = 0.0
    for first, last in sorted(zip(flow.first[kept], flow.last[kept], strict=True)):
        assert first <= reached
        reached = max(reached, last)
    assert reached == flow.stream_bytes == 4e5


CANNOT = {
    "unreliable": ({"mode": "unreliable"}, "unreliable mode"),
    "quasi-reliable": ({"mode": "quasi-reliable"}, "quasi-reliable mode"),
    "coded": ({"coded": {}}, "coded data"),
}


@pytest.mark.parametrize("name", CANNOT)
def test_a_capture_that_cannot_tell_says_why(name):
    transport, reason = CANNOT[name]
    connection = captured(scenario({"kind": "loss", "loss": 0.05}, transport))
    assert reason in connection.untold
    assert connection.forward.is_lost is None
    assert connection.forward.stream_bytes == 4e5


def raw(payload, protocol=254):
    header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), 0, 0, 64, protocol, 0, b"\x0a\0\0\1", b"\x0a\0\0\2")
    return files.Packet(1, 0.0, 101, header + payload, 20 + len(payload))


def segment(control=0x40, flags=0, payload=bytes(10)):
    head = struct.pack("!HHIIBBHH", 1, 2, 100, 5, control, flags, len(payload), 7)
    return head + struct.pack("!H", aerotp._crc_16(head)) + payload


def test_over_udp_it_is_recognised_by_its_check():
    good = struct.pack("!HHHH", 9, 9, 38, 0) + segment()
    assert [one.data_bytes for one in aerotp.connections(files.Capture("a", [raw(good, 17)]))] == [10]
    bad = bytearray(good)
    bad[12] ^= 1
    assert aerotp.connections(files.Capture("a", [raw(bytes(bad), 17)])) == []


@pytest.mark.parametrize(("control", "said"), [(0x60, "sealed"), (0x80, "of version 2")])
def test_what_cannot_be_read_is_refused(control, said):
    with pytest.raises(CaptureError, match=f"1 AeroTP segments are {said}"):
        connections.connections(files.Capture("a", [raw(segment(control))]))


def test_other_protocols_are_named():
    with pytest.raises(CaptureError, match="no TCP and no AeroTP in 1 packets; 1 are STP or ARQ of farlink"):
        connections.connections(files.Capture("a", [raw(bytes(40), 253)]))


def test_random_bytes_are_no_crash():
    generator = np.random.default_rng(5)
    for _ in range(3000):
        whole = bytearray(segment(0x40, int(generator.integers(256)), bytes(40)))
        for _ in range(int(generator.integers(6))):
            whole[int(generator.integers(12, len(whole)))] = int(generator.integers(256))
        packet = raw(bytes(whole[: int(generator.integers(1, len(whole) + 1))]))
        try:
            found = aerotp.connections(files.Capture("a", [packet, raw(segment()), packet]))
        except CaptureError:
            continue
        for connection in found:
            _ = connection.forward, connection.untold
