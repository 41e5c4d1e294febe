"""Trace files (.npz) with false or damaged contents: each a name and its bytes."""

from __future__ import annotations

import io
import json
import struct
import zipfile
import zlib
from collections.abc import Iterator

MEGABYTE = 1 << 20


def npy(descriptor: str, shape: str, data: bytes) -> bytes:
    """An array in NumPy's format with any header."""
    header = f"{{'descr': {descriptor}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def floats(*values: float) -> bytes:
    """An array of doubles."""
    return npy("'<f8'", f"({len(values)},)", struct.pack(f"<{len(values)}d", *values))


def whole(*values: int) -> bytes:
    """An array of whole numbers."""
    return npy("'<u8'", f"({len(values)},)", struct.pack(f"<{len(values)}Q", *values))


def scalar(value: int) -> bytes:
    """A whole number without dimension."""
    return npy("'<u8'", "()", struct.pack("<Q", value))


def flags(*values: int) -> bytes:
    """An array of bytes."""
    return npy("'|u1'", f"({len(values)},)", bytes(values))


def text(content: str) -> bytes:
    """A text as an array."""
    data = content.encode("utf-8", "surrogatepass")
    return npy(f"'|S{len(data)}'", "()", data)


def meta(kind: object, **more: object) -> bytes:
    """The metadata of a trace."""
    return text(json.dumps({"farlink_trace": 1, "kind": kind, **more}))


def npz(**members: bytes) -> bytes:
    """An archive of these arrays."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return buffer.getvalue()


def rate(**changed: bytes) -> bytes:
    """A rate trace with some members replaced."""
    own = {"meta": meta("rate", duration_s=4.0), "time_s": floats(0, 1, 2.5), "rate_bps": floats(1e6, 0, 2e6)}
    return npz(**{**own, **changed})


def bomb(name: str, head: bytes, megabytes: int, **members: bytes) -> bytes:
    """An archive with a member of many zeros, quickly made."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    begin = packer.compress(head) + packer.flush(zlib.Z_FULL_FLUSH)
    zeros = packer.compress(bytes(MEGABYTE)) + packer.flush(zlib.Z_FULL_FLUSH)
    crc = zlib.crc32(head)
    for _ in range(megabytes):
        crc = zlib.crc32(bytes(MEGABYTE), crc)
    packed = begin + zeros * megabytes + packer.flush(zlib.Z_FINISH)
    size = len(head) + megabytes * MEGABYTE
    rest = npz(**members)
    (directory_at,) = struct.unpack_from("<I", rest, len(rest) - 6)
    (directory_size,) = struct.unpack_from("<I", rest, len(rest) - 10)
    file = f"{name}.npy".encode()
    common = struct.pack("<HHHHHIIIHH", 20, 0, 8, 0, 33, crc, len(packed), size, len(file), 0)
    local = b"PK\x03\x04" + common + file + packed
    central = b"PK\x01\x02" + struct.pack("<H", 20) + common + struct.pack("<HHHII", 0, 0, 0, 0, directory_at) + file
    entries = len(members) + 1
    directory = rest[directory_at : directory_at + directory_size] + central
    end = struct.pack("<HHHHIIH", 0, 0, entries, entries, len(directory), directory_at + len(local), 0)
    return rest[:directory_at] + local + directory + b"PK\x05\x06" + end


def patched(data: bytes, find: bytes, put: bytes, *, every: bool = True) -> bytes:
    """A copy with some bytes replaced."""
    assert find in data
    return data.replace(find, put, -1 if every else 1)


def encrypted() -> bytes:
    """An archive whose members are marked as encrypted."""
    data = bytearray(rate())
    at = 0
    while (at := data.find(b"PK\x03\x04", at)) >= 0:
        data[at + 6] |= 1
        at += 4
    at = 0
    while (at := data.find(b"PK\x01\x02", at)) >= 0:
        data[at + 8] |= 1
        at += 4
    return bytes(data)


def sizes(local: int, central: int) -> bytes:
    """An archive whose entries state wrong sizes."""
    data = bytearray(rate())
    at = data.find(b"PK\x03\x04")
    struct.pack_into("<I", data, at + 22, local)
    at = data.find(b"PK\x01\x02")
    struct.pack_into("<I", data, at + 24, central)
    return bytes(data)


def of_rate() -> Iterator[tuple[str, bytes]]:
    """Truncated, patched and inconsistent archives."""
    good = rate()
    yield "empty", b""
    yield "one byte", b"P"
    yield "magic only", b"PK\x03\x04"
    yield "noise", bytes(range(256)) * 4
    for cut in (40, len(good) // 2, len(good) - 1):
        yield f"cut at {cut}", good[:cut]
    yield "encrypted", encrypted()
    yield "smaller than it says", sizes(1 << 30, 1 << 30)
    yield "larger than it says", sizes(10, 10)
    yield "4 GB in the directory", sizes(0xFFFFFFFF, 0xFFFFFFFF)
    yield "compression 99", patched(good, b"\x14\x00\x00\x00\x08\x00", b"\x14\x00\x00\x00\x63\x00")
    yield "directory beyond the end", good[:-6] + struct.pack("<I", 0x7FFFFFFF) + good[-2:]
    yield "checksum", patched(good, struct.pack("<I", zlib.crc32(floats(0, 1, 2.5))), b"\0\0\0\0")
    yield "a bare array", floats(1, 2, 3)
    yield "no meta", npz(time_s=floats(0), rate_bps=floats(1))
    yield "two of a name", npz(**{"meta": meta("rate", duration_s=4.0), "time_s": floats(0), "rate_bps": floats(1)}) * 2
    yield "100,000 members", npz(**{f"a{at}": b"" for at in range(100_000)})
    yield "member outside", rate(**{"../../outside": floats(1)})
    yield "unknown array", rate(junk=floats(1))


def of_arrays() -> Iterator[tuple[str, bytes]]:
    """Arrays that contradict their header."""
    huge = 1 << 60
    yield "745 GB of times", rate(time_s=npy("'<f8'", "(100000000000,)", bytes(24)))
    yield "shape 1e30", rate(time_s=npy("'<f8'", f"({10**30},)", bytes(24)))
    yield "shape below 0", rate(time_s=npy("'<f8'", "(-3,)", bytes(24)))
    yield "shape that overflows", rate(time_s=npy("'<f8'", f"({huge}, {huge})", bytes(24)))
    yield "two dimensions", rate(time_s=npy("'<f8'", "(3, 1)", bytes(24)))
    yield "shape of words", rate(time_s=npy("'<f8'", "('a',)", bytes(24)))
    yield "objects", rate(time_s=npy("'|O'", "(1,)", b"\x80\x04N."))
    yield "records", rate(time_s=npy("[('a', '<f8')]", "(3,)", bytes(24)))
    yield "big endian", rate(time_s=npy("'>f8'", "(3,)", bytes(24)))
    yield "complex", rate(time_s=npy("'<c16'", "(3,)", bytes(48)))
    yield "dates", rate(time_s=npy("'<M8[s]'", "(3,)", bytes(24)))
    yield "texts", rate(time_s=npy("'|S8'", "(3,)", b"A" * 24))
    yield "texts of no length", rate(time_s=npy("'|S0'", "(99999999999,)", b""))
    yield "header cut", rate(time_s=b"\x93NUMPY\x01\x00\xff\xff{'descr'")
    yield "header of 4 GB", rate(time_s=b"\x93NUMPY\x02\x00\xff\xff\xff\xff{'descr'")
    yield "version 3", rate(time_s=b"\x93NUMPY\x03\x00" + floats(1)[8:])
    yield "version 9", rate(time_s=b"\x93NUMPY\x09\x00" + floats(1)[8:])
    yield "header nested", rate(time_s=npy("'<f8'", "(" * 20_000 + ")" * 20_000, b""))
    yield "header of code", rate(time_s=npy("__import__('os').system('true')", "(3,)", bytes(24)))
    yield "no times", rate(time_s=floats(), rate_bps=floats())
    yield "a time that is no number", rate(time_s=floats(0, float("nan"), 2))
    yield "endless time", rate(time_s=floats(0, 1, float("inf")))
    yield "time before 0", rate(time_s=floats(-1, 1, 2))
    yield "time goes back", rate(time_s=floats(0, 2, 1))
    yield "rate below 0", rate(rate_bps=floats(1, -1, 1))
    yield "rate of 1e308", rate(rate_bps=floats(1e308, 1e308, 1e308))
    yield "another number of rates", rate(rate_bps=floats(1))
    yield (
        "64 million zeros more",
        bomb("time_s", npy("'|u1'", f"({520 * MEGABYTE},)", b""), 520, meta=meta("rate", duration_s=9)),
    )
    lost = npy("'|u1'", f"({2048 * MEGABYTE},)", b"")
    yield "2 GB of losses", bomb("lost", lost, 2048, meta=meta("packet-loss"))
    yield "2 GB of junk", bomb("junk", npy("'|u1'", "(1,)", b""), 2048, meta=meta("packet-loss"), lost=flags(0, 1))


def of_meta() -> Iterator[tuple[str, bytes]]:
    """Malformed metadata."""
    yield "meta nested", rate(meta=text('{"farlink_trace": 1, "kind": ' + "[" * 100_000 + "]" * 100_000 + "}"))
    yield "meta a list", rate(meta=text("[1]"))
    yield "meta a number", rate(meta=text("1"))
    yield "meta null", rate(meta=text("null"))
    yield "meta no JSON", rate(meta=text("{"))
    yield "meta no UTF-8", rate(meta=npy("'|S2'", "()", b"\xff\xfe"))
    yield "meta numbers", rate(meta=floats(1))
    yield "meta empty", rate(meta=npy("'|S1'", "()", b"\0"))
    yield "meta of 300 MB", bomb("meta", npy(f"'|S{300 * MEGABYTE}'", "()", b""), 300, time_s=floats(0), rate_bps=floats(1))
    for kind in (None, 1, ["rate"], {"a": 1}, "rat", "", "x" * 10_000, "\x1b[31m"):
        yield f"kind {str(kind)[:12]!r}", rate(meta=meta(kind, duration_s=4.0))
    for duration in (None, "4", True, 1e300, 1e9, -1, 0, 1e-300, 10**400, [], {}):
        yield f"duration {str(duration)[:12]}", rate(meta=meta("rate", duration_s=duration))
    for number in ("NaN", "Infinity", "1e400", "-0.0", "9" * 5000):
        yield (
            f"duration {number[:12]} as it stands",
            rate(meta=text(f'{{"farlink_trace": 1, "kind": "rate", "duration_s": {number}}}')),
        )
    for version in (0, 2, "1", None, [1], 1e300):
        yield f"version {version}", rate(meta=text(json.dumps({"farlink_trace": version, "kind": "rate", "duration_s": 4})))
    yield "title a list", rate(meta=meta("rate", duration_s=4.0, title=[[1]]))
    yield "title of formulas", rate(meta=meta("rate", duration_s=4.0, title=r"$\frac{"))
    yield "title of escapes", rate(meta=meta("rate", duration_s=4.0, title="\x1b]0;x\x07\r\n\x00"))
    yield "title of 10 MB", rate(meta=meta("rate", duration_s=4.0, title="x" * 10_000_000))
    yield "title of half letters", rate(meta=text('{"farlink_trace": 1, "kind": "rate", "duration_s": 4, "title": "\\ud800"}'))
    yield "notes a table", rate(meta=meta("rate", duration_s=4.0, notes={"a": 1}))
    yield "calibration a text", rate(meta=meta("rate", duration_s=4.0, calibration="x"))
    yield "calibration of words", rate(meta=meta("rate", duration_s=4.0, calibration={"ber": "x", "gain_db": []}))


def of_kinds() -> Iterator[tuple[str, bytes]]:
    """Traces of other kinds, with impossible values or values that are hard to draw."""
    power = meta("power", duration_s=1.0)
    yield "power 1e308 W", npz(meta=power, power_w=floats(1e308, 1e308))
    yield "power below 0", npz(meta=power, power_w=floats(1, -1))
    yield "power 0 throughout", npz(meta=power, power_w=floats(0, 0, 0, 0))
    yield "one power", npz(meta=power, power_w=floats(1))
    yield "power too small for a number", npz(meta=power, power_w=floats(5e-324, 5e-324, 0))
    yield "blocked of another length", npz(meta=power, power_w=floats(1, 2), blocked=flags(1))
    yield "all blocked", npz(meta=power, power_w=floats(1, 2), blocked=flags(1, 1))
    yield "blocked 7", npz(meta=power, power_w=floats(1, 2), blocked=flags(1, 7))
    yield "power without duration", npz(meta=meta("power"), power_w=floats(1, 2))
    yield "relative of words", npz(meta=meta("power", duration_s=1.0, relative_power="yes"), power_w=floats(1, 2))
    yield "samples too near", npz(meta=meta("power", duration_s=1e-6), power_w=floats(*[1.0] * 2000))
    yield "ber above 1/2", npz(meta=meta("ber", duration_s=1.0), ber=floats(0.7))
    yield "ber 0 throughout", npz(meta=meta("ber", duration_s=1.0), ber=floats(0, 0))
    yield "C/N0 1e300", npz(meta=meta("cn0", duration_s=1.0), time_s=floats(0), cn0_dbhz=floats(1e300))
    yield "no signal", npz(meta=meta("cn0", duration_s=1.0), time_s=floats(0), cn0_dbhz=floats(float("-inf")))
    yield "C/N0 -1e308", npz(meta=meta("cn0", duration_s=1.0), time_s=floats(0, 0.5), cn0_dbhz=floats(-1e308, 70))
    yield "loss 7", npz(meta=meta("packet-loss"), lost=flags(7))
    yield "no frame", npz(meta=meta("packet-loss"), lost=flags())
    yield "segments beyond", npz(meta=meta("packet-loss"), lost=flags(0, 1), segment_start=whole(0, 1 << 63))
    yield "segments of nothing", npz(meta=meta("packet-loss"), lost=flags(0, 1), segment_start=whole())
    yield "wrong bit beyond", npz(meta=meta("bit-errors"), position=whole(9), bits=scalar(5))
    yield "2**64 bits", npz(meta=meta("bit-errors"), position=whole(0, (1 << 64) - 2), bits=scalar((1 << 64) - 1))
    yield "no bits", npz(meta=meta("bit-errors"), position=whole(), bits=scalar(0))
    yield "no wrong bit", npz(meta=meta("bit-errors"), position=whole(), bits=scalar(5))
    yield "bits a list", npz(meta=meta("bit-errors"), position=whole(1), bits=whole(5, 6))
    own = meta("delivery", duration_s=1.0)
    yield "4e9 bytes each", npz(meta=own, opportunity_s=floats(0, 1), bytes_per_opportunity=scalar((1 << 32) - 1))
    yield "2**40 bytes each", npz(meta=own, opportunity_s=floats(0, 1), bytes_per_opportunity=scalar(1 << 40))
    yield "0 bytes each", npz(meta=own, opportunity_s=floats(0, 1), bytes_per_opportunity=scalar(0))
    yield "all at 0", npz(meta=own, opportunity_s=floats(0, 0), bytes_per_opportunity=scalar(1))
    delay = meta("delay", duration_s=9.0)
    yield "delay 1e300", npz(meta=delay, time_s=floats(0, 1), delay_s=floats(0, 1e300))
    yield "drops of 3", npz(meta=delay, time_s=floats(0, 1), delay_s=floats(0, 1), drop_rate=floats(3, 0))
