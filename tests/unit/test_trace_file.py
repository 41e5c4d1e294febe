"""Trace files: written traces are read back; malformed ones are refused without leaving files behind."""

from __future__ import annotations

import gzip
import io
import tarfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from farlink.channels import cache, trace_file
from farlink.channels.bursts import run_lengths
from farlink.channels.trace import KINDS, Trace, from_bytes
from farlink.cli.trace import app
from farlink.errors import FarlinkError, TraceError

titles = st.text(max_size=20)


@pytest.fixture(autouse=True)
def cache_home(tmp_path, monkeypatch):
    home = tmp_path / "cache-home"
    monkeypatch.delenv("FARLINK_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    return home


@st.composite
def any_trace(draw):
    kind = draw(st.sampled_from(sorted(KINDS)))
    meta = {"title": draw(titles)}
    if kind == "packet-loss":
        return Trace(kind, {"lost": draw(st.lists(st.integers(0, 1), min_size=1, max_size=50))}, meta)
    if kind == "bit-errors":
        position = sorted(draw(st.sets(st.integers(0, 2**40), max_size=20)))
        return Trace(kind, {"position": np.array(position, dtype=np.uint64), "bits": np.array(2**40 + 1)}, meta)
    if kind == "power":
        power_w = draw(st.lists(st.floats(0, 1), min_size=1, max_size=50))
        arrays = {"power_w": power_w}
        if draw(st.booleans()):
            arrays["blocked"] = draw(st.lists(st.integers(0, 1), min_size=len(power_w), max_size=len(power_w)))
        return Trace(kind, arrays, {**meta, "duration_s": draw(st.floats(1e-3, 1e6))})
    if kind == "ber":
        ber = draw(st.lists(st.floats(0, 0.5), min_size=1, max_size=50))
        return Trace(kind, {"ber": ber}, {**meta, "duration_s": draw(st.floats(1e-3, 1e6))})
    times = np.cumsum([0, *draw(st.lists(st.floats(1e-6, 10), max_size=20))])
    meta["duration_s"] = float(times[-1]) + 1
    if kind == "delivery":
        return Trace(kind, {"opportunity_s": times, "bytes_per_opportunity": np.array(1500)}, meta)
    if kind == "cn0":
        levels = st.floats(-1e3, 200) | st.just(-np.inf)
        values = [*draw(st.lists(levels, min_size=times.size - 1, max_size=times.size - 1)), 70.0]
        return Trace(kind, {"time_s": times, "cn0_dbhz": values}, meta)
    name = {"rate": "rate_bps", "delay": "delay_s"}[kind]
    values = draw(st.lists(st.floats(0.001, {"rate": 1e12, "delay": 1e6}[kind]), min_size=times.size, max_size=times.size))
    return Trace(kind, {"time_s": times, name: values}, meta)


@pytest.mark.parametrize("suffix", [".npz", ".parquet"])
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(trace=any_trace())
def test_a_trace_is_read_back_as_it_was_written(tmp_path, suffix, trace):
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    back = trace_file.read(trace_file.write(trace, tmp_path / f"trace{suffix}"))

    assert (back.kind, back.meta) == (trace.kind, trace.meta)
    assert sorted(back.arrays) == sorted(trace.arrays)
    for name in trace.arrays:
        np.testing.assert_array_equal(back[name], trace[name], strict=True)
    assert back.to_bytes() == trace.to_bytes()


@settings(max_examples=60)
@given(trace=any_trace(), cut=st.floats(0, 0.999))
def test_a_truncated_trace_is_refused(trace, cut):
    data = trace.to_bytes()
    with pytest.raises(TraceError):
        from_bytes(data[: int(len(data) * cut)], "cut.npz")


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.binary(max_size=200), name=st.sampled_from(["a.txt", "delay_1.txt", "sdec1-2", "a.csv", "a.gz", "a.npz", "a.tar"])
)
def test_noise_is_imported_or_refused(tmp_path, data, name):
    file = tmp_path / name
    file.write_bytes(data)
    refusal = None
    try:
        cache.resolve(file)
    except FarlinkError as error:
        refusal = error

    assert refusal is None or (refusal.remedy and "\n" not in refusal.message + refusal.remedy)


@given(st.lists(st.booleans(), max_size=100))
def test_run_lengths_add_up_to_the_frames(lost):
    runs = run_lengths(lost)

    assert runs.lost.sum() == sum(lost)
    assert runs.received.sum() == len(lost) - sum(lost)
    assert abs(runs.lost.size - runs.received.size) <= 1


def test_a_measured_file_is_imported_once(tmp_path, cache_home):
    file = tmp_path / "link.down"
    file.write_text("0\n0\n5\n20\n")
    first = cache.resolve(file, kinds=["delivery", "rate"])
    stamp = first.stat().st_mtime_ns

    assert cache.resolve(file) != file
    assert cache.resolve(file, kinds=["delivery", "rate"]) == first
    assert first.stat().st_mtime_ns == stamp
    assert first.is_relative_to(cache_home)
    found = trace_file.read(first)
    assert found["opportunity_s"].tolist() == [0, 0, 0.005, 0.020]
    assert found.duration_s == 0.020
    file.write_text("0\n0\n6\n20\n")
    assert cache.resolve(file, kinds=["delivery", "rate"]) != first


def test_a_damaged_cache_file_is_imported_again(tmp_path):
    file = tmp_path / "link.down"
    file.write_text("1\n")
    kept = cache.resolve(file)
    whole = kept.read_bytes()
    kept.write_bytes(whole[:50])

    assert cache.resolve(file).read_bytes() == whole


def test_a_trace_file_is_used_directly(tmp_path):
    path = trace_file.write(Trace("packet-loss", {"lost": [0, 1]}), tmp_path / "loss.npz")

    assert cache.resolve(path) == path
    with pytest.raises(TraceError, match="a packet-loss trace, where delay is wanted"):
        cache.resolve(path, kinds=["delay"])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.down", b"", "the file is empty"),
        ("empty.down.gz", gzip.compress(b"", mtime=0), "the file is empty"),
        ("delay_1.txt", b"", "the file is empty"),
        ("cut.down.gz", gzip.compress(b"1\n2\n3\n" * 99, mtime=0)[:-12], "not a complete gzip file"),
        ("odd.down", b"1\n2\nabc\n", "line 3: 'abc' is not a time"),
        ("hole.down", b"1\n\n3\n", "line 2: an empty line is not a time"),
        ("back.down", b"1\n9\n5\n", "line 3: 5 ms comes after 9 ms"),
        ("minus.down", b"1\n-2\n", "line 2: '-2' is not a time"),
        ("part.down", b"1\n2.5\n", "line 2: 2.5 is not a whole number"),
        ("zero.down", b"0\n0\n", "every time is 0"),
        ("delay_2.txt", b"12\n-1\n", "line 2: '-1' is not a delay"),
        ("delay_3.txt", b"12\nnan\n", "line 2: 'nan' is not a delay"),
        ("sdec1-2", b"0 12\n1\n", "line 2: '1' is not a sequence number and an RSSI"),
        ("sdec1-3", b"5 12\n5 12\n", "line 2: sequence number 5 comes after 5"),
        ("a.csv", b"time_s,delay_s\n", "a header and no rows"),
        ("b.csv", b"time_s,delay_s\n0,0.1\n1,-0.1\n", "line 3: -0.1 is out of order or range"),
        ("c.csv", b"time_s,delay_s\n1,0.1\n0,0.1\n", "line 3: 0 is out of order or range"),
        ("d.csv", b"time_s,delay_s\n0,0.1\n1\n", "line 3: 1 fields instead of 2"),
        ("e.csv", b"time_s,rate_bps\n0,abc\n", "line 2: rate_bps is 'abc', not a number"),
        ("e2.csv", b"time_s,rate_bps\n1e308,1\n", "line 2: time_s is '1e308', beyond 1e+12 s"),
        ("e3.csv", b"time_s,rate_bps\n0,1e999\n", "line 2: rate_bps is '1e999', not finite"),
        ("f.csv", b"lost\n0\n2\n", "line 3: 2 is out of order or range"),
        ("g.bin", b"\x00\x01\x02", "not a known format"),
        ("h.npz", b"PK\x03\x04", "not a whole .npz archive"),
        ("i.parquet", b"PAR1", "not a complete Parquet file"),
        ("j.tar.gz", b"\x1f\x8b\x08", "not a complete archive"),
    ],
)
def test_a_malformed_file_is_refused_and_nothing_is_written(tmp_path, monkeypatch, name, content, message):
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(content)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(TraceError) as caught:
        cache.resolve(tmp_path / name)
    done = CliRunner().invoke(app, ["import", name, "-o", "out.npz"])

    assert message in caught.value.message
    assert name in caught.value.message
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 2
    assert sorted(tmp_path.rglob("*")) == before


def test_a_missing_file_is_refused(tmp_path):
    for name in ("none.down", "none.npz", "none/none.txt"):
        with pytest.raises(TraceError, match="no such file"):
            cache.resolve(tmp_path / name)


@pytest.mark.parametrize("name", ["x" * 300, f"{'x' * 300}.npz", "a\0b", "a\0b.npz", "/dev/zero", "/dev/zero/member"])
def test_an_unknown_name_of_a_measured_file_is_refused(tmp_path, name):
    with pytest.raises(TraceError):
        cache.resolve(tmp_path / name)


def test_an_empty_reception_trace_loses_everything(tmp_path):
    file = tmp_path / "sdec1-1"
    file.touch()

    assert trace_file.read(cache.resolve(file))["lost"].tolist() == [1] * 300


def test_an_archive_of_several_files_asks_for_one(tmp_path):
    archive = tmp_path / "data.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        for name, text in (("x/sdec1-2", b"0 10\n"), ("x/sdec1-3", b"0 10\n1 11\n")):
            info = tarfile.TarInfo(name)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text))

    with pytest.raises(TraceError, match="holds 2 files") as caught:
        cache.resolve(archive)
    assert "--member" in caught.value.remedy
    with pytest.raises(TraceError, match="has no member y"):
        cache.resolve(archive, member="y")
    assert trace_file.read(cache.resolve(archive / "x/sdec1-3"))["lost"].sum() == 298
    joined = trace_file.read(cache.resolve(archive, member="x/*"))
    assert joined["segment_start"].tolist() == [0, 300]


@pytest.mark.parametrize("suffix", [".png", ".svg", ".html"])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.down", "0\n0\n500\n2000\n"),
        ("one.down", "1\n"),
        ("delay_1.txt", "10\n12\n"),
        ("sdec1-2", "0 10\n2 11\n"),
        ("r.csv", "time_s,rate_bps\n0,1\n1,0\n"),
        ("all.csv", "lost\n0\n"),
    ],
)
def test_show_draws_every_kind(tmp_path, monkeypatch, suffix, name, text):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(text)
    done = CliRunner().invoke(app, ["show", name, "-o", f"picture{suffix}"])

    assert done.exit_code == 0, done.stderr
    assert f"picture{suffix}" in done.stderr
    assert (tmp_path / f"picture{suffix}").stat().st_size > 1000
    if suffix == ".html":
        page = (tmp_path / "picture.html").read_text()
        # On a narrow page both scroll instead of being cut off.
        assert '<div class="scroll"><svg' in page
        assert '<div class="scroll"><table' in page
        assert "min-width:648px" in page


def test_import_prints_a_summary_and_writes_the_trace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link.down").write_text("0\n1\n2\n1000\n")
    done = CliRunner().invoke(app, ["import", "link.down"])

    assert done.exit_code == 0, done.stderr
    assert "48 kbit/s" in done.stdout
    assert trace_file.read(tmp_path / "link.down.npz").kind == "delivery"


def test_an_unknown_format_names_the_nearest(tmp_path):
    file = tmp_path / "a.down"
    file.write_text("1\n")
    with pytest.raises(TraceError, match="no trace format 'mahimah'") as caught:
        cache.resolve(file, format="mahimah")
    assert "did you mean 'mahimahi'?" in caught.value.remedy


@pytest.mark.parametrize("starts", [None, [0], [0, 3]])
def test_available_links_are_named_when_there_are_several(starts):
    from farlink.channels.summary import summary

    arrays = {"lost": [1, 1, 1, 0, 0, 0]} | ({} if starts is None else {"segment_start": starts})
    found = summary(Trace("packet-loss", arrays))

    assert ("links" in found) == (starts == [0, 3])
    if "links" in found:
        assert (found["links"], found["links_with_nothing"], found["links_with_everything"]) == (2, 0.5, 0.5)
