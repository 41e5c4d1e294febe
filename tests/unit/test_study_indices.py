"""Indices of sensitivity: of a function whose indices are known, and refusals."""

from __future__ import annotations

import math

import pytest
from tests.conftest import assert_refused

import farlink
from farlink.errors import StudyError
from farlink.study.indices import indices_of
from farlink.study.sample import drawn

pytest.importorskip("SALib")

# Ishigami and Homma 1990: y = sin x1 + A sin(x2)^2 + B x3^4 sin x1, each x uniform in [-pi, pi].
A, B = 7.0, 0.1
V1, V2, V13 = 0.5 * (1 + B * math.pi**4 / 5) ** 2, A**2 / 8, B**2 * math.pi**8 * (1 / 18 - 1 / 50)
V = V1 + V2 + V13
FIRST = (V1 / V, V2 / V, 0.0)
TOTAL = ((V1 + V13) / V, V2 / V, V13 / V)


def ishigami(kind, points, seed):
    """The sample, its points as a study has them, and the function there."""
    ranges = {f"link.x{number}": {"from": -math.pi, "to": math.pi} for number in (1, 2, 3)}
    sample = {"kind": kind, "points": points, "seed": seed, "range": ranges}
    data = {"sample": sample}
    (axes,) = drawn(data, farlink.Scenario(data)).data["grid_zip"]
    at = [dict(zip(axes, values, strict=True)) for values in zip(*axes.values(), strict=True)]
    return sample, at, [math.sin(x1) + A * math.sin(x2) ** 2 + B * x3**4 * math.sin(x1) for x1, x2, x3 in map(dict.values, at)]


@pytest.mark.published("Ishigami and Homma 1990, by the formula of Sobol' and Levitan 1999")
@pytest.mark.parametrize("seed", [1, 2])
def test_indices_of_ishigamis_function_are_those_of_its_formula(seed):
    found = indices_of(*ishigami("saltelli", 4096, seed))

    assert [one.path for one in found] == ["link.x1", "link.x2", "link.x3"]
    for one, first, total in zip(found, FIRST, TOTAL, strict=True):
        assert one.first == pytest.approx(first, abs=min(0.01, one.first_ci95))
        assert one.total == pytest.approx(total, abs=min(0.01, one.total_ci95))
        assert 0 < one.first_ci95 < 0.05
    assert indices_of(*ishigami("saltelli", 4096, seed)) == found


@pytest.mark.parametrize("kind", ["latin-hypercube", "sobol"])
def test_other_samples_give_first_order_indices(kind):
    found = indices_of(*ishigami(kind, 4096, 1))

    assert [one.first for one in found] == pytest.approx(FIRST, abs=0.03)
    assert [one.total for one in found] == [None] * 3


def test_values_without_indices_are_refused():
    sample, points, values = ishigami("saltelli", 16, 1)
    for some, said in (
        (values[:-1], "79 points are not the 80 of the sample"),
        ([1.0] * 80, "the same at all points"),
        ([math.nan, *values[1:]], "1 of 80 points have no value, the first of them point 0"),
    ):
        with pytest.raises(StudyError, match=said):
            indices_of(sample, points[: len(some)], some)
    with pytest.raises(StudyError, match="64 points are too few"):
        indices_of(*ishigami("latin-hypercube", 64, 1))


STUDY = """
engines = ["model"]
duration_s = 1000
link = { rate_bps = 1e6, delay_s = 0.25, channel = { kind = "loss", loss = 1e-3 } }
transport.tcp = { kind = "tcp", variant = "sack", max_window_segments = 70 }
flow.bulk = { transport = "tcp", traffic = { kind = "bulk" } }

[sample]
kind = "saltelli"
points = 8

[sample.range]
"link.channel.loss" = { from = 1e-5, to = 1e-2, scale = "log" }
"link.delay_s" = { from = 0.02, to = 0.3 }
"""


def test_the_command_shows_indices_and_names_what_is_not_there(farlink, tmp_path):
    (tmp_path / "study.toml").write_text(STUDY)
    assert farlink("sweep", "study.toml", "-o", "out", "--workers", "1").returncode == 0

    shown = farlink("sweep", "indices", "out")

    assert (shown.returncode, shown.stderr) == (0, "")
    head, *lines = shown.stdout.splitlines()
    assert head.split() == ["parameter", "first-order", "±", "total", "±"]
    assert [line.split()[0] for line in lines] == ["link.channel.loss", "link.delay_s"]
    assert all(math.isfinite(float(number)) for line in lines for number in line.split()[1:])
    assert_refused(farlink("sweep", "indices", "out", "--quantity", "godput_bps"), ["did you mean 'goodput_bps'?"])
    assert_refused(farlink("sweep", "indices", "out", "--engine", "packet"), ["--engine packet: not in this study"])
    assert_refused(farlink("sweep", "indices", "out", "--flow", "bulky"), ["--flow bulky: not in this study"])
    (tmp_path / "grid.toml").write_text(STUDY.split("[sample]")[0])
    farlink("sweep", "grid.toml", "-o", "grid", "--workers", "1")
    assert_refused(farlink("sweep", "indices", "grid"), ["its points were not drawn"])
