"""Packet captures: pcap and pcapng of every kind, the TCP connections in them, and refusals with the byte."""

from __future__ import annotations

import gzip
import shutil
import struct
import subprocess
from contextlib import contextmanager, suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from farlink.capture import connections, files
from farlink.cli.trace import app
from farlink.errors import CaptureError

FIN, SYN, ACK = 1, 2, 16
HERE, THERE = b"\x0a\0\0\1", b"\x0a\0\0\2"


def tcp_header(source, destination, sequence, acknowledged, flags):
    return struct.pack("!HHIIBBHHH", source, destination, sequence % 2**32, acknowledged % 2**32, 5 << 4, flags, 1000, 0, 0)


def ipv4(sequence, acknowledged=0, data=0, flags=ACK, back=False, ports=(5000, 80)):
    """Headers only, as from a short snapshot; the length is that of the whole."""
    ends, numbers = ((THERE, HERE), ports[::-1]) if back else ((HERE, THERE), ports)
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 40 + data, 0, 0, 64, 6, 0, *ends)
    return ip + tcp_header(*numbers, sequence, acknowledged, flags)


def ipv6(sequence, data=0, extension=False):
    more = struct.pack("!BBHI", 6, 0, 0, 0) if extension else b""
    length = 20 + data + len(more)
    ip = struct.pack("!IHBB16s16s", 6 << 28, length, 60 if extension else 6, 64, b"\1" * 16, b"\2" * 16)
    return ip + more + tcp_header(5000, 80, sequence, 0, ACK)


def pcap(packets, *, order="<", link_type=101, nanoseconds=False):
    magic, units = (0xA1B23C4D, 10**9) if nanoseconds else (0xA1B2C3D4, 10**6)
    out = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 65535, link_type)
    for time_s, data in packets:
        out += struct.pack(order + "IIII", int(time_s), round(time_s % 1 * units), len(data), len(data)) + data
    return out


def block(kind, body, order="<"):
    body += b"\0" * (-len(body) % 4)
    return struct.pack(order + "II", kind, len(body) + 12) + body + struct.pack(order + "I", len(body) + 12)


def pcapng(packets, *, order="<", link_type=101, options=b"", resolution=10**6):
    out = block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)
    out += block(4, b"a block of names, which is not read", order)
    out += block(1, struct.pack(order + "HHI", link_type, 0, 0) + options, order)
    for time_s, data in packets:
        stamp = round(time_s * resolution)
        head = struct.pack(order + "IIIII", 0, stamp >> 32, stamp & 0xFFFFFFFF, len(data), len(data))
        out += block(6, head + data + b"\0" * (-len(data) % 4), order)
    return out


TRANSFER = [
    (1e9, ipv4(100, flags=SYN)),
    (1e9 + 0.5, ipv4(900, 101, flags=SYN | ACK, back=True)),
    (1e9 + 1, ipv4(101, 901, data=1000)),
    (1e9 + 1.25, ipv4(1101, 901, data=1000)),
    (1e9 + 2, ipv4(901, 1101, back=True)),
    (1e9 + 9, ipv4(1101, 901, data=1000)),
    (1e9 + 10, ipv4(2101, 901, data=500)),
    (1e9 + 11, ipv4(901, 2601, back=True)),
    (1e9 + 12, ipv4(2601, 901, flags=FIN | ACK)),
    (1e9 + 13, ipv4(901, 2602, back=True)),
]


def read(tmp_path, data, name="a.pcap"):
    path = tmp_path / name
    path.write_bytes(data)
    return files.read(path)


def only(tmp_path, data):
    capture = read(tmp_path, data)
    return connections.chosen(connections.connections(capture), capture)


def assert_transfer(connection):
    flow = connection.forward
    assert connection.name == "10.0.0.1:5000 → 10.0.0.2:80"
    assert (flow.time_s - 1e9).tolist() == pytest.approx([1, 1.25, 9, 10])
    assert flow.first.tolist() == [0, 1000, 1000, 2000]
    assert flow.last.tolist() == [1000, 2000, 2000, 2500]
    assert flow.is_again.tolist() == [False, False, True, False]
    # The last acknowledgement covers the FIN, which is not a byte of data.
    assert flow.acknowledged.tolist() == [0, 1000, 2500, 2500]
    assert flow.stream_bytes == 2500


FORMS = {
    "pcap": pcap(TRANSFER),
    "pcap, the other byte order": pcap(TRANSFER, order=">"),
    "pcap, nanoseconds": pcap(TRANSFER, nanoseconds=True),
    "pcapng": pcapng(TRANSFER),
    "pcapng, the other byte order": pcapng(TRANSFER, order=">"),
    "pcapng, nanoseconds": pcapng(
        TRANSFER, options=struct.pack("<HHBxxx", 9, 1, 9) + struct.pack("<HH", 0, 0), resolution=10**9
    ),
    "pcapng, binary fractions": pcapng(TRANSFER, options=struct.pack("<HHBxxx", 9, 1, 0x80 | 20), resolution=2**20),
    "pcapng, an offset": pcapng(
        [(time_s - 1e6, data) for time_s, data in TRANSFER], options=struct.pack("<HHq", 14, 8, 1_000_000)
    ),
    "compressed": gzip.compress(pcap(TRANSFER), mtime=0),
    "Ethernet": pcap([(t, b"\0" * 12 + b"\x08\0" + data) for t, data in TRANSFER], link_type=1),
    "VLAN in a VLAN": pcap([(t, b"\0" * 12 + b"\x88\xa8\0\5\x81\0\0\6\x08\0" + data) for t, data in TRANSFER], link_type=1),
    "PPP": pcap([(t, b"\xff\x03\0\x21" + data) for t, data in TRANSFER], link_type=9),
    "PPP, shortened": pcap([(t, b"\x21" + data) for t, data in TRANSFER], link_type=9),
    "cooked": pcap([(t, b"\0" * 14 + b"\x08\0" + data) for t, data in TRANSFER], link_type=113),
    "cooked, second form": pcap([(t, b"\x08\0" + b"\0" * 18 + data) for t, data in TRANSFER], link_type=276),
    "loopback": pcap([(t, b"\2\0\0\0" + data) for t, data in TRANSFER], link_type=0),
}


@pytest.mark.parametrize("data", FORMS.values(), ids=FORMS)
def test_every_form_of_a_capture_gives_the_same_transfer(tmp_path, data):
    assert_transfer(only(tmp_path, data))


def test_sequence_numbers_wrap_and_a_capture_may_start_mid_connection(tmp_path):
    numbers = [2**32 - 1500, 2**32 - 500, 500, 2**32 - 500, 1500]
    data = [(index, ipv4(number, data=1000)) for index, number in enumerate(numbers)]
    data += [(9, ipv4(1, 2**32 - 5000, back=True)), (10, ipv4(1, 2500, back=True))]

    flow = only(tmp_path, pcap(data)).forward

    assert flow.first.tolist() == [0, 1000, 2000, 1000, 3000]
    assert flow.is_again.tolist() == [False, False, False, True, False]
    assert flow.acknowledged.tolist() == [0, 4000]


@pytest.mark.parametrize("extension", [False, True])
def test_ipv6_captures_are_read(tmp_path, extension):
    flow = only(tmp_path, pcap([(1, ipv6(1, 700, extension)), (2, ipv6(701, 300, extension))]))

    assert flow.forward.stream_bytes == 1000
    assert flow.name.startswith("[101:101:")


def test_the_largest_connection_is_chosen_and_a_port_may_be_used_again(tmp_path):
    more = [(1e9 + 20, ipv4(7, flags=SYN)), (1e9 + 21, ipv4(8, data=100)), (1e9 + 22, ipv4(1, data=200, ports=(1, 2)))]
    noise = [(1e9 + 30, b"\x45\0\0\x14" + b"\0" * 5 + b"\x11" + b"\0" * 10), (1e9 + 31, b"\xff"), (1e9 + 32, b"")]
    capture = read(tmp_path, pcap([*TRANSFER, *more, *noise]))

    found = connections.connections(capture)

    assert [(one.stream, one.data_bytes) for one in found] == [(0, 3500), (1, 100), (2, 200)]
    assert connections.chosen(found, capture) is found[0]
    assert connections.chosen(found, capture, 2) is found[2]
    with pytest.raises(CaptureError, match="there is no connection 3"):
        connections.chosen(found, capture, 3)


def test_a_connection_without_data_is_refused(tmp_path):
    capture = read(tmp_path, pcap(TRANSFER[:2]))

    with pytest.raises(CaptureError, match="none of 1 connections carries any data"):
        connections.chosen(connections.connections(capture), capture)


@pytest.mark.parametrize("form", ["pcap", "pcapng"])
def test_a_truncated_capture_gives_its_intact_part(tmp_path, form):
    whole = FORMS[form]

    capture = read(tmp_path, whole[:-7])

    assert len(capture.packets) == len(TRANSFER) - 1
    assert f"cut off at byte {len(whole) - 7}, in packet {len(TRANSFER)}" in capture.note
    with pytest.raises(CaptureError, match="before the end of its first packet"):
        read(tmp_path, whole[: len(pcap([])) + 20] if form == "pcap" else whole[:60])


def test_damage_is_refused_with_its_byte_and_packet(tmp_path):
    third = len(pcap(TRANSFER[:2]))
    data = bytearray(pcap(TRANSFER))
    data[third + 8 : third + 12] = b"\xff\xff\xff\x7f"
    with pytest.raises(CaptureError, match=rf"a\.pcap, byte {third}: packet 3 is 2147483647 bytes long"):
        read(tmp_path, data)
    data = bytearray(pcap(TRANSFER))
    data[third + 4 : third + 8] = b"\xff\xff\xff\x7f"
    with pytest.raises(CaptureError, match=rf"byte {third}: packet 3 is at 2147483647 of 1000000 parts"):
        read(tmp_path, data)

    third = len(pcapng(TRANSFER[:2]))
    for at, said in ((4, "a block of 7 bytes after packet 2"), (8, "packet 3 is of interface 7, and the file has 1")):
        data = bytearray(pcapng(TRANSFER))
        data[third + at] = 7
        with pytest.raises(CaptureError, match=rf"a\.pcap, byte {third}: {said}"):
            read(tmp_path, data)
    data = bytearray(pcapng(TRANSFER))
    data[-4] += 4
    with pytest.raises(CaptureError, match="ends as one of"):
        read(tmp_path, data)
    data = bytearray(pcapng(TRANSFER))
    data[third + 20] = 200
    with pytest.raises(CaptureError, match="packet 3 of 200 bytes in a block that holds 40"):
        read(tmp_path, data)


REFUSED = {
    "empty": (b"", "the file is empty"),
    "text": (b"No.,Time,Source\n1,0.0,10.0.0.1\n", "no capture: it begins with 4e 6f 2e 2c"),
    "short": (b"\xd4", "no capture"),
    "no packet": (pcap([]), "no packet in 24 bytes"),
    "damaged gzip": (b"\x1f\x8b\x08\0abc", "not a complete gzip file"),
    "patched": (b"\x34\xcd\xb2\xa1" + bytes(40), "a patched form of pcap"),
    "no byte order": (block(0x0A0D0D0A, bytes(16)), "a section without its byte order: 00 00 00 00"),
    "without times": (
        pcapng([]) + block(3, struct.pack("<I", 4) + b"abcd"),
        "packet 1 has no time",
    ),
}


@pytest.mark.parametrize(("data", "said"), REFUSED.values(), ids=REFUSED)
def test_files_that_are_not_captures_are_refused(tmp_path, data, said):
    with pytest.raises(CaptureError, match=said) as error:
        read(tmp_path, data)
    assert error.value.remedy


def test_captures_without_tcp_say_what_they_hold(tmp_path):
    with pytest.raises(CaptureError, match="no TCP and no AeroTP in 1 packets; link type 147 is not known"):
        connections.connections(read(tmp_path, pcap([(1, b"abcdef")], link_type=147)))
    with pytest.raises(CaptureError, match=r"no TCP and no AeroTP in 1 packets$"):
        connections.connections(read(tmp_path, pcap([(1, b"abcdef")])))
    with pytest.raises(CaptureError, match="No such file"):
        files.read(tmp_path / "none.pcap")
    with pytest.raises(CaptureError, match="is a directory"):
        files.read(tmp_path)


@given(st.sampled_from(["pcap", "pcapng", "Ethernet"]), st.lists(st.tuples(st.integers(0, 900), st.integers(0, 255))))
def test_no_damage_crashes_the_reader(tmp_path_factory, form, damage):
    data = bytearray(FORMS[form])
    for at, value in damage:
        data[at % len(data)] = value
    path = tmp_path_factory.getbasetemp() / "damaged.pcap"
    path.write_bytes(data)

    with suppress(CaptureError):
        capture = files.read(path)
        flow = connections.chosen(connections.connections(capture), capture).forward
        assert np.all(flow.last > flow.first)
        assert np.all(np.diff(flow.acknowledged) >= 0)


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed; Debian's package is tshark")
def test_tshark_agrees(tmp_path):
    """Wireshark's fields of a simulated transfer's capture, packet by packet."""
    from farlink import trace_run

    run = trace_run(
        {
            "duration_s": 60,
            "runs": 1,
            "link": {"rate_bps": 1e5, "delay_s": 0.2, "channel": {"kind": "loss", "loss": 0.05}},
            "transport": {"sack": {"kind": "tcp", "variant": "sack", "segment_bytes": 500}},
            "flow": {"f": {"transport": "sack", "traffic": {"kind": "bulk"}}},
        },
        pcap=True,
        quantities=[],
    )
    path = tmp_path / "run.pcapng"
    path.write_bytes(run.pcapng)
    shown = ["-T", "fields", "-e", "frame.time_epoch", "-e", "tcp.seq", "-e", "tcp.len", "-e", "tcp.analysis.retransmission"]
    command = ["tshark", "-r", str(path), "-Y", "tcp.len > 0", *shown]
    rows = [
        line.split("\t")
        for line in subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.splitlines()
    ]

    capture = files.read(path)
    flow = connections.chosen(connections.connections(capture), capture).forward

    assert len(rows) > 100
    assert flow.time_s.tolist() == pytest.approx([float(row[0]) for row in rows], abs=1e-6)
    assert flow.first.tolist() == [int(row[1]) - 1 for row in rows]
    assert (flow.last - flow.first).tolist() == [int(row[2]) for row in rows]
    assert flow.is_again.sum() > 3


def test_every_segment_is_drawn_at_its_place_in_the_stream(tmp_path):
    pytest.importorskip("matplotlib")
    from farlink.plot.time_sequence import time_sequence

    figure = time_sequence(only(tmp_path, pcap(TRANSFER)))

    (ax,) = figure.axes
    drawn = {line.get_label(): line.get_xydata().tolist() for line in ax.lines}
    assert ax.get_ylabel() == "sequence number (kB)"
    assert drawn["sent"] == [[1, 1], [1.25, 2], [10, 2.5]]
    assert drawn["sent again"] == [[9, 2]]
    assert drawn["acknowledged"] == [[0.5, 0], [2, 1], [11, 2.5], [13, 2.5]]


def test_showing_a_capture_prints_progress(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    said = []

    @contextmanager
    def busy(first):
        said.append(first)
        yield said.append

    monkeypatch.setattr("farlink.cli.trace_sequence.busy", busy)
    (tmp_path / "a.pcap").write_bytes(pcap(TRANSFER))
    done = CliRunner().invoke(app, ["show", str(tmp_path / "a.pcap"), "-o", str(tmp_path / "a.svg")])

    assert done.exit_code == 0, done.output
    assert said == ["reading a.pcap", "sorting packets by connection", "drawing"]
