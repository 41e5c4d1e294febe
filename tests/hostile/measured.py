"""Hostile measured files, logs, captures, tables and scenarios: each a name, a file name and its bytes."""

from __future__ import annotations

import gzip
import io
import json
import struct
import tarfile
from collections.abc import Iterator
from typing import Any

MEGABYTE = 1 << 20


def gzip_bomb(line: bytes, head: bytes, megabytes: int) -> bytes:
    """A gzip file of many megabytes of one line, a member for each megabyte."""
    block = gzip.compress(line * (MEGABYTE // len(line)), 9)
    return gzip.compress(head) + block * megabytes


def texts() -> Iterator[tuple[str, str, bytes]]:
    """Series as text."""
    head = b"time_s,rate_bps\n"
    yield "CSV empty", "a.csv", b""
    yield "CSV of spaces", "a.csv", b" \n \n"
    yield "CSV with a header only", "a.csv", head
    yield "CSV of noise", "a.csv", head + bytes(range(256)) * 20
    yield "CSV of zeros", "a.csv", head + bytes(5000)
    yield "CSV with a zero in a cell", "a.csv", head + b"0,1\n1,\x002\n"
    yield "CSV with an open quote", "a.csv", head + b'0,1\n1,"2\n' + b"3,4\n" * 50_000
    yield "CSV of one line of 20 MB", "a.csv", head + b"1" * 20_000_000
    yield "CSV of a header of 10 MB", "a.csv", b"time_s,rate_bps," + b"x" * 10_000_000 + b"\n1,2,3\n"
    yield "CSV of a million columns", "a.csv", b"time_s,rate_bps" + b",x" * 1_000_000 + b"\n" + b"1," * 1_000_001 + b"1\n"
    yield "CSV of endless times", "a.csv", head + b"0,1\ninf,2\n"
    yield "CSV of times at the end of doubles", "a.csv", head + b"1e308,1e6\n1.1e308,2e6\n"
    yield "CSV of times from end to end", "a.csv", head + b"-1e308,1e6\n1e308,2e6\n"
    yield "CSV of rates of 1e308", "a.csv", head + b"0,1e308\n1,1e308\n"
    yield "CSV of numbers of 5000 digits", "a.csv", head + b"0," + b"9" * 5000 + b"\n1,2\n"
    yield "CSV of a week of microseconds", "a.csv", head + b"0,1\n1e-9,2\n6e5,3\n"
    yield "CSV of superscripts", "a.csv", head + "0,²\n1,٣\n".encode()
    yield "CSV in UTF-16", "a.csv", "time_s,rate_bps\n0,1\n".encode("utf-16")
    yield "CSV of other line ends", "a.csv", "time_s,rate_bps\r0,1\r1,2\r\x0b\x0c\x1c\u2028".encode()
    yield "CSV with one name twice", "a.csv", b"time_s,rate_bps,rate_bps\n0,1,2\n1,2,3\n"
    yield "losses of 1e300", "a.csv", b"lost\n0\n1e300\n"
    yield "gzip cut", "a.csv.gz", gzip.compress(head + b"0,1\n" * 9999)[:-9]
    yield "gzip of nothing", "a.csv.gz", gzip.compress(b"")
    yield "gzip with noise behind", "a.csv.gz", gzip.compress(head + b"0,1\n") + b"noise" * 9
    yield "gzip in gzip", "a.csv.gz", gzip.compress(gzip.compress(head + b"0,1\n"))
    yield "gzip of 4 GB", "a.csv.gz", gzip_bomb(b"0,1\n", head, 4096)
    yield "gzip of 200 million line ends", "a.down.gz", gzip_bomb(b"\n", b"1\n", 200)
    yield "gzip of other line ends", "a.csv.gz", gzip_bomb(b"\x0b", b"time_s,power_w\n", 300)
    yield "times beyond 2**64", "a.mahi", b"18446744073709551615\n18446744073709551616\n"
    yield "times of 5000 digits", "a.mahi", b"9" * 5000 + b"\n"
    yield "times of 1e300", "a.mahi", b"1\n1e300\n"
    yield "times of a year", "a.mahi", b"0\n31536000000\n"
    yield "a delay of 1e300", "delay_1.txt", b"1\n1e300\n"
    yield "sequence numbers of 5000 digits", "sdec1-2", b"1 12\n" + b"9" * 5000 + b" 12\n"
    yield "sequence numbers in superscript", "sdec1-2", "1 12\n² 12\n".encode()
    power = b"time_s,power_w\n"
    yield "power of words", "p.csv", power + b"0,a\n1,b\n"
    yield "power of 1e300 W", "p.csv", power + b"0,1e300\n1,1e300\n"
    yield "power with a gap of a million years", "p.csv", power + b"0,1\n1,1\n2,1\n3e13,1\n"
    yield "power with a gap of 1e300 s", "p.csv", power + b"0,1\n1,1\n2,1\n1e300,1\n"
    yield "power of dates beyond the calendar", "p.csv", power + b"0001-01-01,1\n9999-12-31,2\n9999999-01-01,3\n"
    yield "power of one sample", "p.csv", power + b"0,1\n"
    yield "power without a number", "p.csv", power + b"0,nan\n1,nan\n"
    yield "C/N0 of gaps", "c.csv", b"time_s,cn0_dbhz\n0,nan\n1e-320,1\n1e300,2\n"
    yield "C/N0 of 1e308 s", "c.csv", b"time_s,cn0_dbhz\n0,70\n1e308,71\n"


def archives() -> Iterator[tuple[str, str, bytes]]:
    """Archives of several files."""

    def tar(mode: str, **members: bytes) -> bytes:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode=mode) as archive:  # type: ignore[call-overload]
            for name, content in members.items():
                info = tarfile.TarInfo(name)
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
        return buffer.getvalue()

    good = tar("w", a=b"1\n2\n")
    yield "tar cut", "a.tar", good[:600]
    yield "tar of noise", "a.tar", bytes(range(256)) * 8
    yield "tar.gz of 4 GB", "a.tar.gz", gzip_bomb(b"\0" * 1024, b"", 4096)
    yield "tar of a size of 8 EB", "a.tar", good[:124] + b"\x80" + b"\x7f" * 11 + good[136:]
    sparse = tarfile.TarInfo("a")
    sparse.pax_headers = {"GNU.sparse.major": "0", "GNU.sparse.minor": "1", "GNU.sparse.size": str(1 << 42),
                          "GNU.sparse.map": f"{(1 << 42) - 1},1", "GNU.sparse.name": "a"}  # fmt: skip
    sparse.size = 1
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(sparse, io.BytesIO(b"1"))
    yield "tar of a sparse file of 4 TB", "a.tar", buffer.getvalue()
    link = tarfile.TarInfo("a")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.addfile(link)
    yield "tar of a link", "a.tar", buffer.getvalue()
    yield "tar in xz", "a.tar", tar("w:xz", a=b"1\n2\n")


def tables() -> Iterator[tuple[str, str, bytes]]:
    """Parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def parquet(columns: dict[str, Any], said: object = None, **options: Any) -> bytes:
        table = pa.table(columns)
        if said is not None:
            words = said if isinstance(said, str) else json.dumps(said)
            table = table.replace_schema_metadata({b"farlink_trace": words.encode()})
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, **options)
        return bytes(sink.getvalue())

    own = {"kind": "rate", "meta": {"duration_s": 9}, "rest": {}, "units": {}}
    columns = {"time_s": [0.0, 1.0], "rate_bps": [1.0, 2.0]}
    good = parquet(columns, own)
    yield "Parquet magic only", "a.parquet", b"PAR1"
    yield "Parquet cut", "a.parquet", good[: len(good) // 2]
    yield "Parquet of noise", "a.parquet", b"PAR1farlink_trace" + bytes(range(256)) * 9 + b"PAR1"
    yield "Parquet footer of 2 GB", "a.parquet", good[:-8] + struct.pack("<I", 0x7FFFFFFF) + b"PAR1"
    for at in (30, 60, len(good) - 60, len(good) - 200):
        yield f"Parquet with a byte changed at {at}", "a.parquet", good[:at] + bytes([good[at] ^ 0x55]) + good[at + 1 :]
    for said in ("{", "[1]", '"a"', "[" * 100_000, {**own, "kind": ["rate"]}, {**own, "rest": [1]}, {**own, "meta": "x"},
                 {**own, "meta": {"duration_s": "x"}}, {**own, "rest": {"junk": [[1], [2, 3]]}}, {}):  # fmt: skip
        yield f"Parquet metadata {str(said)[:30]}", "a.parquet", parquet(columns, said)
    yield "Parquet of texts", "a.parquet", parquet({"time_s": ["a", "b"], "rate_bps": ["c", "d"]}, own)
    yield "Parquet of lists", "a.parquet", parquet({"time_s": [[0.0], [1.0]], "rate_bps": [[1.0], [2.0]]}, own)
    yield "Parquet of nothing", "a.parquet", parquet({"time_s": [None, None], "rate_bps": [None, None]}, own)
    many = pa.array([1.0]).take(pa.array([0] * 1_000_000))
    many = pa.chunked_array([many] * 200)
    yield "Parquet of 200 million rows", "a.parquet", parquet({"time_s": many, "rate_bps": many}, own)
    long = pa.DictionaryArray.from_arrays(pa.array([0] * 200_000, pa.int32()), pa.array(["x" * 100_000]))
    yield (
        "Parquet of texts of 20 GB",
        "a.parquet",
        parquet({"@timestamp": long, "dish_status.pop_ping_latency_ms": [1.0] * 200_000}),
    )
    dish = {"@timestamp": ["x"], "dish_status.pop_ping_latency_ms": ["y"], "dish_status.pop_ping_drop_rate": ["z"]}
    yield "dish of words", "a.parquet", parquet(dish)
    yield "dish of words in times", "a.parquet", parquet({**dish, "@timestamp": ["2024-01-01T00:00:00+00:00"]})
    yield "dish in the year 1", "a.parquet", parquet({**dish, "@timestamp": ["0001-01-01T00:00:00+14:00"]})


def numbers() -> Iterator[tuple[str, str, bytes]]:
    """MATLAB, HDF5, NetCDF."""
    import h5py
    import numpy as np
    import scipy.io

    buffer = io.BytesIO()
    scipy.io.savemat(buffer, {"power_w": np.ones(50), "fs": 10.0}, do_compression=True)
    mat = buffer.getvalue()
    yield "MATLAB head only", "a.mat", mat[:128]
    for at in (20, 126, 130, 135, 140, 150, len(mat) - 8):
        yield f"MATLAB with a byte changed at {at}", "a.mat", mat[:at] + bytes([mat[at] ^ 0x7F]) + mat[at + 1 :]
    yield "MATLAB cut", "a.mat", mat[:-20]
    buffer = io.BytesIO()
    scipy.io.savemat(buffer, {"power_w": np.zeros(80 * MEGABYTE), "fs": 10.0}, do_compression=True)
    yield "MATLAB of 640 MB of zeros", "a.mat", buffer.getvalue()

    def hdf5(**data: Any) -> bytes:
        buffer = io.BytesIO()
        with h5py.File(buffer, "w") as file:
            file.attrs["fs"] = 10.0
            for name, options in data.items():
                file.create_dataset(name, **options)
        return buffer.getvalue()

    good = hdf5(power_w={"data": np.ones(50)})
    yield "HDF5 signature only", "a.h5", good[:8]
    yield "HDF5 cut", "a.h5", good[: len(good) // 2]
    for at in (9, 40, 100, 200, 500, 800, 1000):
        yield f"HDF5 with a byte changed at {at}", "a.h5", good[:at] + bytes([good[at] ^ 0x7F]) + good[at + 1 :]
    yield "HDF5 of 8 PB", "a.h5", hdf5(power_w={"shape": (1 << 50,), "dtype": "f8", "chunks": (1 << 20,)})
    zeros = {"data": np.zeros(80 * MEGABYTE), "chunks": (MEGABYTE,), "compression": "gzip", "compression_opts": 1}
    yield "HDF5 of 640 MB of zeros", "a.h5", hdf5(power_w=zeros)
    yield "HDF5 of a file of the system", "a.h5", hdf5(power_w={"shape": (50,), "dtype": "f8", "external": "/etc/passwd"})
    yield "HDF5 of records", "a.h5", hdf5(power_w={"data": np.zeros(3, dtype=[("a", "f8"), ("b", "S3")])})
    yield "HDF5 of nothing", "a.h5", hdf5()
    yield "HDF5 of words", "a.h5", hdf5(power_w={"data": np.array([b"a", b"b"])})
    buffer = io.BytesIO()
    with scipy.io.netcdf_file(buffer, "w") as file:
        file.createDimension("time", 5)
        file.createVariable("power_w", "f8", ("time",))[:] = 1.0
        file.flush()
        nc = buffer.getvalue()
    yield "NetCDF head only", "a.nc", b"CDF\x01"
    yield "NetCDF cut", "a.nc", nc[: len(nc) // 2]
    yield "NetCDF of format 5", "a.nc", b"CDF\x05" + nc[4:]
    for at in (4, 11, 19, 27, 31, 40, 60, 80):
        yield f"NetCDF with a byte changed at {at}", "a.nc", nc[:at] + bytes([nc[at] ^ 0x7F]) + nc[at + 1 :]


def captures() -> Iterator[tuple[str, str, bytes]]:
    """pcap and pcapng."""
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)
    yield "capture empty", "a.pcap", b""
    yield "capture of a head", "a.pcap", head
    yield "capture of noise", "a.pcap", head + bytes(range(256)) * 4
    yield "packet of 4 GB", "a.pcap", head + struct.pack("<IIII", 1, 1, 0xFFFFFFFF, 0xFFFFFFFF)
    yield "packets of nothing", "a.pcap", head + struct.pack("<IIII", 1, 1, 0, 0) * 1000
    yield "capture of 6 million packets", "a.pcap.gz", gzip_bomb(struct.pack("<IIII", 1, 1, 0, 0), head, 100)
    yield "capture of 4 GB", "a.pcap.gz", gzip_bomb(bytes(1024), head, 4096)
    section = struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)
    yield "section only", "a.pcapng", section
    yield "block of no length", "a.pcapng", section + struct.pack("<III", 1, 0, 0)
    clock = struct.pack("<IIHHIHHB3xI", 1, 28, 101, 0, 0, 9, 1, 0xFF, 28)
    ip = bytes.fromhex("45000028000000004006000001020304050607080050005000000000000000005000000000000000")
    packet = struct.pack("<IIIIIII", 6, 32 + len(ip), 0, 0xFFFFFFFF, 0xFFFFFFFF, len(ip), len(ip)) + ip + struct.pack("<I", 72)
    yield "clock of 2**-127 s", "a.pcapng", section + clock + packet
    offset = struct.pack("<IIHHIHHqI", 1, 32, 101, 0, 0, 14, 8, (1 << 63) - 1, 32)
    yield "clock of 2**63 s", "a.pcapng", section + offset + packet
    yield "packet of no interface", "a.pcapng", section + packet
    tcp = struct.pack("<IIII", 1, 1, len(ip), len(ip)) + ip
    yield "TCP without data", "a.pcap", head + tcp * 3
    longer = ip[:2] + b"\xff\xff" + ip[4:]
    yield "TCP longer than kept", "a.pcap", head + (struct.pack("<IIII", 1, 1, len(ip), 65535) + longer) * 3


def logs() -> Iterator[tuple[str, str, bytes]]:
    """Logs of calls."""

    def line(**changed: Any) -> bytes:
        return json.dumps({"time": "2026-07-04T12:00:03Z", "link": "m", "event": "connected", **changed}).encode() + b"\n"

    yield "log empty", "a.jsonl", b""
    yield "log of noise", "a.jsonl", b"{" + bytes(range(256))
    yield "log nested", "a.jsonl", b'{"a":' + b"[" * 100_000 + b"\n"
    yield "log of a line of 20 MB", "a.jsonl", b'{"time": "' + b"1" * 20_000_000 + b'"}\n'
    changes: list[tuple[str, Any]] = [
        *(("time", value) for value in (1e300, True, {}, "0001-01-01T00:00:00+14:00", "9" * 5000)),
        *(("link", value) for value in (["m"], {}, "x" * 1_000_000, "\x1b[31m")),
        *(("bars", 1e300), ("bars", []), ("snr_db", "nan"), ("snr_db", {}), ("monotonic_s", "inf")),
        *(("event", ["dropped"]), ("cause", {"a": [1]})),
    ]
    for name, value in changes:
        yield f"log with {name} {str(value)[:12]!r}", "a.jsonl", line() + line(**{"event": "dropped", name: value})
    yield "log of numbers as they stand", "a.jsonl", b'{"time": 1e999, "link": NaN, "event": "dropped"}\n'
    yield "log with a number of 5000 digits", "a.jsonl", b'{"time": ' + b"9" * 5000 + b', "link": "m", "event": "dropped"}\n'
    yield "log of 4 GB", "a.jsonl.gz", gzip_bomb(line(), b"", 4096)
    yield "log of 200 million line ends", "a.jsonl.gz", gzip_bomb(b"\n", line(), 200)
    csv = b"time,link,event\n"
    yield "log as CSV with a zero", "a.csv", csv + b"2026-07-04T12:00:03Z,\x00,connected\n"
    yield "log as CSV with a long cell", "a.csv", csv + b"2026-07-04T12:00:03Z," + b"x" * 300_000 + b",connected\n"
    yield "log as CSV of other line ends", "a.csv", csv.replace(b"\n", b"\r") + b"2026-07-04T12:00:03Z,m,connected\r"
    yield "log of Parquet", "a.parquet", b"PAR1" + bytes(100) + b"PAR1"


def scenarios() -> Iterator[tuple[str, str, bytes]]:
    """Scenario files."""
    yield "scenario of zeros", "a.toml", bytes(1000)
    yield "scenario nested", "a.toml", b"a = " + b"[" * 100_000
    yield "scenario of dots", "a.toml", b"a" + b".a" * 100_000 + b" = 1"
    yield "scenario of tables", "a.toml", b"".join(b"[a%d]\n" % at for at in range(50_000))
    yield "scenario of infinity", "a.toml", b"duration_s = inf\n[link]\nrate_bps = nan\n"
    yield "scenario of a number of 5000 digits", "a.toml", b"duration_s = " + b"9" * 5000
    yield "scenario of 80 MB", "a.toml", b"#" * 80_000_000
    yield "scenario with one key twice", "a.toml", b"runs = 1\nruns = 2\n"
    yield "scenario of escapes", "a.toml", b'"\\u001b[31m" = 1\n'


def kept_tables() -> Iterator[tuple[str, str, bytes]]:
    """Look-up tables."""
    yield "table empty", "t.json", b""
    yield "table nested", "t.json", b"[" * 100_000
    yield "table a list", "t.json", b"[1]"
    yield "table without rows", "t.json", b'{"rows": []}'
    yield "table of numbers", "t.json", b'{"rows": [1, 2]}'
    row = '{"share": 1, "flows": 1, "cn0_dbhz": %s, "status": "ok", "step": 1}'
    for value in ("1e999", "NaN", '"x"', "[]", "true", "9" * 400, "9" * 5000):
        rows = (row % value).encode()
        yield f"table of C/N0 {value[:12]}", "t.json", b'{"rows": [' + rows + b'], "study": {}}'
    yield "table without a study", "t.json", b'{"rows": [' + (row % "60").encode() + b"]}"
    yield "table as TOML, nested", "t.toml", b"rows = " + b"[" * 100_000
    yield "table of 80 MB", "t.json", b" " * 80_000_000
