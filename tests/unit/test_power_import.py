"""Received power from CSV, MATLAB, HDF5 and NetCDF: units, times and gaps; errors name the sample."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from farlink.channels import cache, importers, power
from farlink.channels.importers import apart
from farlink.channels.importers.recording import Hints, Recording
from farlink.errors import FarlinkError, TraceError

POWER_W = np.array([1e-8, 2e-8, 0.5e-8, 4e-8, 3e-8])
DBM = 10 * np.log10(POWER_W / 1e-3)


@pytest.fixture(autouse=True)
def _starts_with_imports(programs, monkeypatch):
    """The process that reads a file starts with its imports; those of `test_mutated_files` and `tests/cli` do not."""
    interpreter = sys.executable

    def run(command, *, input, env, **rest):
        if command[0] != interpreter:
            return subprocess.run(command, input=input, env=env, **rest)
        assert rest == {"capture_output": True, "check": False}
        return programs.run(command[1:], cwd=Path.cwd(), env=env, given=input)

    monkeypatch.setattr(apart, "subprocess", SimpleNamespace(run=run))


def imported(tmp_path, name, content, **said):
    file = tmp_path / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    formats = said.pop("format", None)
    return cache.import_file(file, format=formats, hints=Hints(**said))


def rows(header, *columns, separator=","):
    lines = [header] if header else []
    lines += [separator.join(f"{value:.10g}" for value in row) for row in zip(*columns, strict=True)]
    return "\n".join(lines) + "\n"


TIME_S = np.arange(5) / 1000

SAME = {
    "unit in the header": (rows("time_s,power_dbm", TIME_S, DBM), {}),
    "unit in brackets": (rows("Time [ms],Power [nW]", 1e3 * TIME_S, 1e9 * POWER_W), {}),
    "unit said": (rows("t,rx", TIME_S, 1e6 * POWER_W), {"unit": "uW"}),
    "the unit that is said stands above the header": (rows("t,power_w", TIME_S, 1e3 * POWER_W), {"unit": "mW"}),
    "rate said": (rows("power_w", POWER_W), {"sample_rate_hz": 1000.0}),
    "no header, numbers alone": (rows("", POWER_W), {"unit": "W", "sample_rate_hz": 1000.0}),
    "no header, time first": (rows("", TIME_S, POWER_W), {"unit": "W"}),
    "columns by number": (rows("", 9 + 0 * TIME_S, POWER_W, TIME_S), {"unit": "W", "column": "2", "time_column": "3"}),
    "columns by name": (rows("n,a,b", TIME_S, DBM, DBM + 3), {"unit": "dbm", "column": "a", "time_column": "n"}),
    "semicolons": (rows("time_s;power_dbm", TIME_S, DBM, separator=";"), {}),
    "decimal commas": (rows("time_s;power_dbm", TIME_S, DBM, separator=";").replace(".", ","), {}),
    "tabs": (rows("time_s\tpower_dbm", TIME_S, DBM, separator="\t"), {}),
    "spaces": (rows("time_s power_dbm", TIME_S, DBM, separator="  "), {}),
    "another separator": (rows("time_s|power_dbm", TIME_S, DBM, separator="|"), {"separator": "|"}),
    "comments": ("# a note\n% another\n\n" + rows("time_s,power_dbm", TIME_S, DBM), {}),
    "header in a comment": ("# recorded today\n" + rows("# time_s,power_dbm", TIME_S, DBM), {}),
    "times that begin elsewhere": (rows("time_s,power_dbm", 77 + TIME_S, DBM), {}),
    "words in another column": (
        "time_s,state,power_dbm\n" + "".join(f"{t:g},ok,{p:.10g}\n" for t, p in zip(TIME_S, DBM, strict=True)), {}
    ),
    "dates": (
        "timestamp,power_dbm\n" + "".join(f"2007-06-01T12:00:00.{n:03d}Z,{p:.10g}\n" for n, p in enumerate(DBM)), {}
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "said"), SAME.values(), ids=SAME)
def test_every_spelling_of_the_same_series_imports_alike(tmp_path, text, said):
    trace = imported(tmp_path, "power.csv", text, **said)

    assert trace.kind == "power"
    np.testing.assert_allclose(trace["power_w"], POWER_W, rtol=1e-8)
    assert power.sample_rate_hz(trace) == pytest.approx(1000, rel=1e-6)
    assert trace.duration_s == pytest.approx(0.005, rel=1e-6)


def matlab(**variables):
    sio = pytest.importorskip("scipy.io")
    file = io.BytesIO()
    sio.savemat(file, variables)
    return file.getvalue()


def hdf5(build, userblock=0):
    h5py = pytest.importorskip("h5py")
    file = io.BytesIO()
    with h5py.File(file, "w", **({"userblock_size": userblock} if userblock else {})) as root:
        build(root)
    return file.getvalue()


def matlab_7_3(build):
    data = bytearray(hdf5(build, 512))
    data[:20] = b"MATLAB 7.3 MAT-file,"
    return bytes(data)


def classic_netcdf(tmp_path):
    sio = pytest.importorskip("scipy.io")
    path = tmp_path / "made.nc"
    with sio.netcdf_file(path, "w") as file:
        file.createDimension("time", 5)
        time = file.createVariable("time", "f8", ("time",))
        time[:] = TIME_S
        time.units = "seconds since 2007-06-01 12:00:00"
        stored = file.createVariable("rx", "i2", ("time",))
        stored[:] = np.array([10, 20, 5, 40, 30])
        stored.units = "W"
        stored.scale_factor = 1e-9
    return path.read_bytes()


def test_matlab_vector_with_a_rate(tmp_path):
    trace = imported(tmp_path, "lin.mat", matlab(samps=POWER_W.reshape(-1, 1)), unit="W", sample_rate_hz=1000.0)

    np.testing.assert_array_equal(trace["power_w"], POWER_W)


def test_matlab_structure_with_its_sample_rate(tmp_path):
    record = {"power_dbm": DBM, "fs": 1000.0, "temperature": np.arange(5.0), "note": "windy"}
    trace = imported(tmp_path, "record.mat", matlab(rec=record))

    np.testing.assert_allclose(trace["power_w"], POWER_W)
    assert trace.duration_s == pytest.approx(0.005)


def test_matlab_matrix_is_read_by_columns(tmp_path):
    trace = imported(tmp_path, "m.mat", matlab(x=np.c_[TIME_S, POWER_W]), unit="W", column="x:2", time_column="x:1")

    np.testing.assert_array_equal(trace["power_w"], POWER_W)


def test_matlab_7_3_is_read_as_hdf5(tmp_path):
    def build(root):
        root["power_w"] = POWER_W.reshape(1, -1)
        root["fs"] = np.array([[1000.0]])
        root["name"] = np.array([[119], [105]], np.uint16)
        root["name"].attrs["MATLAB_class"] = np.bytes_("char")

    trace = imported(tmp_path, "new.mat", matlab_7_3(build))

    assert trace.meta["source"].startswith("new.mat")
    np.testing.assert_array_equal(trace["power_w"], POWER_W)


def test_hdf5_with_units_and_paths(tmp_path):
    def build(root):
        group = root.create_group("rx")
        group["signal"] = DBM
        group["signal"].attrs["units"] = "dBm"
        group["time"] = TIME_S * 1e3
        group["time"].attrs["units"] = "ms"
        root["weather/wind"] = np.arange(7.0)

    np.testing.assert_allclose(imported(tmp_path, "a.h5", hdf5(build))["power_w"], POWER_W)
    by_path = imported(tmp_path, "a.h5", hdf5(build), column="rx/signal", sample_rate_hz=500.0)
    assert by_path.duration_s == pytest.approx(0.01)


def test_hdf5_table_and_rate_as_an_attribute(tmp_path):
    def build(root):
        root["log"] = np.array(list(zip(TIME_S, POWER_W, strict=True)), dtype=[("x", "f8"), ("power_w", "f8")])
        root.attrs["sample_rate_hz"] = 1000

    np.testing.assert_array_equal(imported(tmp_path, "a.h5", hdf5(build))["power_w"], POWER_W)


def test_classic_netcdf_is_unpacked(tmp_path):
    trace = imported(tmp_path, "a.nc", classic_netcdf(tmp_path))

    np.testing.assert_allclose(trace["power_w"], POWER_W)
    assert trace.duration_s == pytest.approx(0.005)


def test_netcdf_4_is_unpacked(tmp_path):
    netcdf = pytest.importorskip("netCDF4")
    path = tmp_path / "made.nc"
    with netcdf.Dataset(path, "w") as file:
        file.createDimension("time", 5)
        time = file.createVariable("time", "f8", ("time",))
        time[:] = TIME_S * 1e3
        time.units = "milliseconds since 2007-06-01 12:00:00"
        stored = file.createVariable("rx", "i2", ("time",), fill_value=-99)
        stored.scale_factor = 1e-9
        stored.units = "W"
        stored[:] = np.ma.array(POWER_W, mask=[0, 0, 1, 0, 0])
    trace = imported(tmp_path, "a.nc", path.read_bytes(), gaps="hold")

    np.testing.assert_allclose(trace["power_w"], [1e-8, 2e-8, 2e-8, 4e-8, 3e-8])
    assert trace.duration_s == pytest.approx(0.005)


def test_gaps_are_held_or_blocked(tmp_path):
    text = "time_s,power_w\n0,1\n0.001,2\n0.002,\n0.003,nan\n0.007,5\n0.008,6\n"

    held = imported(tmp_path, "p.csv", text, gaps="hold")
    assert held["power_w"].tolist() == [1, 2, 2, 2, 2, 2, 2, 5, 6]
    assert "blocked" not in held.arrays
    cut = imported(tmp_path, "p.csv", text, gaps="blocked")
    assert cut["power_w"].tolist() == [1, 2, 0, 0, 0, 0, 0, 5, 6]
    assert cut["blocked"].tolist() == [0, 0, 1, 1, 1, 1, 1, 0, 0]
    assert cut.duration_s == pytest.approx(0.009)
    assert "5 samples missing in 1 gap" in cut.meta["notes"]


def test_a_gap_at_the_beginning_takes_the_first_power(tmp_path):
    assert imported(tmp_path, "p.csv", "power_w\nnan\n2\n3\n", sample_rate_hz=1.0, gaps="hold")["power_w"].tolist() == [2, 2, 3]


def test_times_printed_rounded_make_no_gap(tmp_path):
    time_s = np.round(np.arange(30_000) / 3000, 6)
    trace = imported(tmp_path, "p.csv", rows("time_s,power_w", time_s, np.ones(time_s.size)))

    assert trace["power_w"].size == 30_000
    assert power.sample_rate_hz(trace) == pytest.approx(3000, rel=1e-6)


def test_relative_power_is_marked(tmp_path):
    trace = imported(tmp_path, "p.csv", "I\n0.9\n1.1\n", unit="normalised", sample_rate_hz=10.0)

    assert power.is_relative(trace)
    assert trace["power_w"].tolist() == [0.9, 1.1]


def test_minus_infinity_dbm_is_zero_power(tmp_path):
    assert imported(tmp_path, "p.csv", "power_dbm\n-30\n-inf\n", sample_rate_hz=1.0)["power_w"].tolist() == [1e-6, 0]


SAID = {"unit": "W", "sample_rate_hz": 1000.0}
REFUSED = [
    ("p.csv", "time_s,power\n0,1\n1,2\n", {}, "the unit of power is not known", "--unit"),
    ("p.csv", "time_s,power\n0,1\n1,2\n", {"unit": "V"}, "'V' is no unit of power", "dBm"),
    ("p.csv", "power_w\n1\n2\n", {}, "no times and no sampling rate", "--sample-rate-hz"),
    ("p.csv", "power_w\n1\n-2\n", SAID, "power_w is -2 W at sample 1", "--unit dBm"),
    ("p.csv", "power_w\n1\n2\ninf\n", SAID, "power_w is inf W at sample 2", "remove"),
    ("p.csv", "power_dbm\n1\n2\n9999\n", {"sample_rate_hz": 1.0}, "power_dbm is 9999 dBm at sample 2", "unit"),
    ("p.csv", "power_w\n1\n2\n\nnan\n5\n", SAID, "2 samples missing in 1 gap, the first of 2 at sample 2", "--gaps"),
    ("p.csv", "time_s,power_w\n0,1\n\n2,5\n", {}, "line 3: 1 fields instead of 2", "complete"),
    ("p.csv", "power_w\n1\n2\nnan\n5\n", SAID, "1 sample missing in 1 gap, the first of 1 at sample 2", "--gaps hold"),
    (
        "p.csv",
        "time_s,power_w\n0,1\n1,2\n2,3\n7,4\n8,5\n",
        {},
        "4 samples missing in 1 gap, the first of 4 at sample 3",
        "--gaps",
    ),
    ("p.csv", "time_s,power_w\n0,1\n1,2\n0.5,3\n", {}, "the clock goes backwards at sample 2, 0.5 s after 1 s", "sort"),
    ("p.csv", "time_s,power_w\n0,1\n1,2\n1,3\n", {}, "the clock stands still at sample 2", "sort"),
    ("p.csv", "time_s,power_w\n0,1\n1,2\n,3\n", {}, "the time of sample 2 is missing", "complete"),
    ("p.csv", "time_s,power_w\n0,1\n1,2\n2,2\n2.3,2\n3.3,1\n", {}, "sample 3 comes 0.3 s after the one before", "resample"),
    ("p.csv", "time_s,power_w\n0,1\n1e-3,2\n2e-3,2\n1e7,2\n", {"gaps": "hold"}, "samples with the gap before sample 3", "cut"),
    ("p.csv", "time_s,power_w\n0,1\n", {}, "one sample has no sampling rate", "--sample-rate-hz"),
    ("p.csv", "time_s,power_w\n", {}, "a header and no rows", "again"),
    ("p.csv", "time_s,power_w\n0,1\n1,x\n", {}, "line 3: power_w is 'x', not a number", "complete"),
    ("p.csv", "time_s,power_w\n0,1\n1\n", {}, "line 3: 1 fields instead of 2", "truncated"),
    ("p.csv", "a,b\n0,1\n1,2\n", SAID, "several columns: a, b", "--column"),
    ("p.csv", "power_w,power_w\n0,1\n1,2\n", SAID, "two columns have the same name", "name"),
    ("p.csv", "power_w\n1\n2\n", {**SAID, "column": "rx"}, "no column rx", "power_w"),
    ("p.csv", "power_w\n1\n2\n", {**SAID, "gaps": "keep"}, "gaps 'keep'", "hold"),
    ("p.csv", "power_w\n1\n2\n", {"sample_rate_hz": -1.0}, "a sampling rate of -1 Hz", "above 0"),
    ("p.csv", "power_w\nnan\nnan\n", {**SAID, "gaps": "hold"}, "no sample is a number", "column"),
    ("p.csv", "power_w\n1\n", {**SAID, "separator": "both"}, "separator 'both'", "comma"),
    (
        "p.csv",
        "time_s,delay_s\n0,1\n",
        {"unit": "W", "format": "csv"},
        "--unit is for received power and C/N0, this is csv",
        "csv-power",
    ),
    ("p.mat", b"MATLAB 5.0 MAT-file" + bytes(60), SAID, "not a complete MATLAB file", "again"),
    ("p.h5", b"\x89HDF\r\n\x1a\n" + bytes(60), SAID, "not a complete HDF5 file", "again"),
    ("p.nc", b"CDF\x01" + bytes(3), SAID, "not a complete NetCDF file", "again"),
    ("p.nc", b"CDF\x05" + bytes(60), SAID, "NetCDF of format 5 is not read", "nccopy"),
]


@pytest.mark.parametrize(("name", "content", "said", "message", "remedy"), REFUSED, ids=[row[3] for row in REFUSED])
def test_unreadable_files_are_refused(tmp_path, name, content, said, message, remedy):
    if name.endswith((".mat", ".nc")):
        pytest.importorskip("scipy")
    if name.endswith(".h5"):
        pytest.importorskip("h5py")
    with pytest.raises(TraceError) as caught:
        imported(tmp_path, name, content, **said)

    assert message in caught.value.message
    assert remedy in caught.value.remedy


def test_a_file_without_the_requested_column_is_refused(tmp_path):
    text = np.full((40, 40), 1.0)
    for name, content in (("a.mat", matlab(x=text)), ("a.h5", hdf5(lambda root: root.create_dataset("x", data=text)))):
        with pytest.raises(TraceError, match="no column of numbers"):
            imported(tmp_path, name, content, **SAID)


def test_a_trace_file_refuses_import_options(tmp_path):
    from farlink.channels.trace_file import write

    path = write(imported(tmp_path, "p.csv", "power_w\n1\n2\n", **SAID), tmp_path / "p.npz")
    with pytest.raises(TraceError, match="is a trace already"):
        cache.import_file(path, hints=Hints(unit="W"))


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    power_w=st.lists(st.floats(1e-15, 1e3), min_size=2, max_size=40),
    rate_hz=st.floats(0.1, 1e5),
    unit=st.sampled_from([("W", 1.0), ("mW", 1e3), ("uW", 1e6), ("nW", 1e9), ("pW", 1e12)]),
    kind=st.sampled_from(["csv", "mat", "h5"]),
)
def test_a_written_trace_is_imported_unchanged(tmp_path, power_w, rate_hz, unit, kind):
    stored = np.array(power_w) * unit[1]
    if kind == "csv":
        content = "x\n" + "".join(f"{value!r}\n" for value in stored.tolist())
    elif kind == "mat":
        content = matlab(x=stored)
    else:
        content = hdf5(lambda root: root.create_dataset("x", data=stored))
    trace = imported(tmp_path, f"a.{kind}", content, unit=unit[0], sample_rate_hz=rate_hz)

    np.testing.assert_allclose(trace["power_w"], power_w, rtol=1e-12)
    assert power.sample_rate_hz(trace) == pytest.approx(rate_hz)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    head=st.sampled_from([b"", b"\x89HDF\r\n\x1a\n", b"CDF\x01", b"CDF\x02", b"power_w\n", b"t;power_dbm\n"]),
    data=st.binary(max_size=300),
    said=st.sampled_from([{}, SAID, {"unit": "dBm"}, {"column": "1"}]),
)
def test_noise_is_imported_or_refused(tmp_path, head, data, said):
    refusal = None
    try:
        imported(tmp_path, "noise", head + data, **said)
    except FarlinkError as error:
        refusal = error

    assert refusal is None or (refusal.remedy and "\n" not in refusal.message + refusal.remedy)


# Each of these is read in another process.
@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut=st.floats(0, 0.99), byte=st.integers(0, 255))
def test_a_damaged_matlab_file_is_imported_or_refused(tmp_path, cut, byte):
    made = matlab(rec={"power_dbm": DBM, "fs": 1000.0})
    place = int(len(made) * cut)
    for content in (made[:place] + bytes([byte]) + made[place + 1 :], b"MATLAB 5.0 MAT-file" + made[place:]):
        refusal = None
        try:
            imported(tmp_path, "a.mat", content, sample_rate_hz=1000.0)
        except FarlinkError as error:
            refusal = error
        assert refusal is None or refusal.remedy


def test_a_file_that_crashes_the_reader_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("farlink.channels.importers.apart.sys.executable", "/bin/false")

    with pytest.raises(TraceError, match="not a complete MATLAB file"):
        imported(tmp_path, "a.mat", matlab(power_w=POWER_W), sample_rate_hz=1000.0)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut=st.floats(0, 0.99), kind=st.sampled_from(["h5", "nc"]), byte=st.integers(0, 255))
def test_a_damaged_file_is_imported_or_refused(tmp_path, cut, kind, byte):
    """Read in this process, which survives such damage; `test_mutated_files` reads in another process, as users do."""
    importer = {"h5": importers.hdf5, "nc": importers.netcdf}[kind]
    made = {
        "h5": lambda: hdf5(lambda root: root.create_dataset("power_w", data=POWER_W)),
        "nc": lambda: classic_netcdf(tmp_path),
    }[kind]()
    place = int(len(made) * cut)
    for content in (made[:place], made[:place] + bytes([byte]) + made[place + 1 :]):
        refusal = None
        try:
            importer.trace_here(Recording(f"a.{kind}", f"a.{kind}", content, Hints(sample_rate_hz=1000.0)))
        except FarlinkError as error:
            refusal = error
        assert refusal is None or refusal.remedy


def test_a_scenario_may_name_the_measured_file(tmp_path, monkeypatch):
    from farlink.channels import cache, trace_file

    monkeypatch.delenv("FARLINK_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    file = tmp_path / "p.csv"
    file.write_text(rows("time_s,power_dbm", TIME_S, DBM))

    found = cache.resolve(file, kinds=["power"])
    assert found.is_relative_to(tmp_path / "home")
    np.testing.assert_allclose(trace_file.read(found)["power_w"], POWER_W)
