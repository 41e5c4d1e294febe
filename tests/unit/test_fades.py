"""Statistics of fading on traces with known fades, and properties of all traces."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farlink.channels import blockages, fades, power
from farlink.channels.receiver import Receiver
from farlink.channels.trace import Trace
from farlink.errors import TraceError

RECEIVER = Receiver("FRM5W621KT/LT", 1.35e-9, 0.8, 622e6)
RATE_HZ = 1000.0

powers = st.lists(st.one_of(st.just(0.0), st.floats(1e-12, 1e-3)), min_size=1, max_size=300).filter(lambda p: sum(p) > 0)


def band_limited(seed=1, size=200_000, cut=0.02):
    """Lognormal power of a Gaussian process without power above a frequency, in cycles per sample."""
    rng = np.random.default_rng(seed)
    spectrum = rng.standard_normal(size // 2 + 1) + 1j * rng.standard_normal(size // 2 + 1)
    spectrum[int(cut * size) :] = 0
    gauss = np.fft.irfft(spectrum)
    return np.exp(0.4 * gauss / gauss.std())


def power_trace(power_w, blocked=None, rate_hz=RATE_HZ):
    arrays = {"power_w": np.asarray(power_w, dtype=float)}
    if blocked is not None:
        arrays["blocked"] = np.asarray(blocked).astype(np.uint8)
    return Trace("power", arrays, {"duration_s": arrays["power_w"].size / rate_hz})


def test_fades_made_by_hand_are_found():
    # 10 s; three fades of 10, 30 and 5 ms, each 20 dB below.
    level = np.ones(10_000)
    for start, length in ((1000, 10), (4000, 30), (9995, 5)):
        level[start : start + length] = 0.01
    (found,) = fades.fade_statistics(level, RATE_HZ, [-6])

    assert found.fades == 3
    assert found.rate_per_s == pytest.approx(0.3)
    assert found.mean_s == pytest.approx(0.015)
    assert found.median_s == pytest.approx(0.010)
    assert found.max_s == pytest.approx(0.030)
    assert found.time_below == pytest.approx(0.0045)


def test_a_threshold_is_relative_to_the_mean():
    level = np.concatenate((np.full(500, 1.0), np.full(500, 3.0)))
    above, below = fades.fade_statistics(level, RATE_HZ, [-3.0, -3.1])  # 1 is 3.01 dB below the mean of 2

    assert (above.fades, below.fades) == (1, 0)


def test_constant_power_never_fades():
    level = np.full(5000, 2e-9)
    (found,) = fades.fade_statistics(level, RATE_HZ, [-0.01])
    lags_s, correlation = fades.autocorrelation(level, RATE_HZ, 1.0)

    assert (found.fades, found.rate_per_s, found.time_below) == (0, 0, 0)
    assert np.isnan(found.mean_s)
    assert fades.scintillation_index(level) == pytest.approx(0, abs=1e-15)
    assert np.all(correlation == 1)
    assert np.isnan(fades.correlation_time_s(lags_s, correlation))
    np.testing.assert_array_equal(fades.short_term_ber(level, RECEIVER), RECEIVER.ber(2e-9))
    assert fades.long_term_ber(level, RECEIVER) == pytest.approx(RECEIVER.ber(2e-9), rel=1e-12)


def test_bit_errors_lie_inside_the_low_power_step():
    level = np.full(1000, 60e-9)
    level[400:500] = 10e-9
    ber = fades.short_term_ber(level, RECEIVER)

    assert np.all(ber[400:500] == RECEIVER.ber(10e-9))
    assert np.all(np.delete(ber, slice(400, 500)) == RECEIVER.ber(60e-9))
    assert fades.long_term_ber(level, RECEIVER) == pytest.approx(
        0.1 * RECEIVER.ber(10e-9) + 0.9 * RECEIVER.ber(60e-9), rel=1e-12
    )


def test_blocked_samples_are_excluded_from_statistics():
    level = band_limited(size=20_000)
    mask = np.zeros(level.size, bool)
    mask[5000:7000] = True
    dark = np.where(mask, 1e-6, level)
    short = np.delete(level, slice(5000, 7000))

    assert fades.scintillation_index(dark, blocked=mask) == pytest.approx(fades.scintillation_index(short))
    assert fades.long_term_ber(dark * 1e-8, RECEIVER, blocked=mask) == pytest.approx(
        fades.long_term_ber(short * 1e-8, RECEIVER)
    )
    (found,) = fades.fade_statistics(dark, RATE_HZ, [-3], blocked=mask)
    (expected,) = fades.fade_statistics(short, RATE_HZ, [-3])
    assert found.rate_per_s == pytest.approx(expected.rate_per_s, abs=1.01 / 18)  # one fade may be cut in two
    assert found.time_below == pytest.approx(expected.time_below)
    level_db, share = fades.cumulative(dark, blocked=mask)
    assert (level_db[0], share[-1]) == (pytest.approx(10 * np.log10(short.min() / short.mean())), 1.0)


def test_a_blockage_splits_a_fade():
    level = np.array([1, 1, 1, 0.1, 0.1, 0.1, 1, 1, 1, 1])
    mask = np.zeros(10, bool)
    mask[4] = True

    assert fades.fade_statistics(level, 1.0, [-3])[0].fades == 1
    assert fades.fade_statistics(level, 1.0, [-3], blocked=mask)[0].fades == 2


def test_autocorrelation_equals_the_mean_over_pairs():
    level = band_limited(size=4001)
    centred = level - level.mean()
    lags_s, found = fades.autocorrelation(level, RATE_HZ, 0.2)

    assert lags_s[-1] == pytest.approx(0.2)
    for lag in (1, 7, 50, 200):
        assert found[lag] == pytest.approx(np.mean(centred[:-lag] * centred[lag:]) / np.mean(centred**2), rel=1e-9)


def test_autocorrelation_leaves_out_pairs_with_a_blockage():
    level = band_limited(size=3000)
    mask = np.zeros(level.size, bool)
    mask[1000:1300] = mask[2000:2100] = True
    centred = level - level[~mask].mean()
    _, found = fades.autocorrelation(np.where(mask, 0.0, level), RATE_HZ, 0.1, blocked=mask)

    for lag in (1, 20, 100):
        both = ~mask[:-lag] & ~mask[lag:]
        assert found[lag] == pytest.approx(
            np.mean((centred[:-lag] * centred[lag:])[both]) / np.mean(centred[~mask] ** 2), rel=1e-9
        )


def test_histogram_and_cumulative_distribution_agree():
    level = band_limited()
    edges, density = fades.histogram(level, bin_db=0.5)
    level_db, share = fades.cumulative(level)

    assert density.sum() * 0.5 == pytest.approx(1)
    below_3_db = density[edges[1:] <= -3].sum() * 0.5
    assert np.interp(-3, level_db, share) == pytest.approx(below_3_db, rel=0.02)
    assert share[0] == pytest.approx(1 / level.size)


def test_power_of_zero_lies_below_every_level():
    level_db, share = fades.cumulative([0.0, 0.0, 1.0, 1.0])
    _, density = fades.histogram([0.0, 0.0, 1.0, 1.0], bin_db=0.5)

    assert share.tolist() == [0.75, 1.0]
    assert np.isfinite(level_db).all()
    assert density.sum() * 0.5 == pytest.approx(0.5)


def test_min_max_bands_keep_every_extreme():
    series = np.random.default_rng(3).standard_normal(100_003)
    found = fades.bands(series, RATE_HZ, buckets=700)

    assert found.low.size == 700
    assert (found.low.min(), found.high.max()) == (series.min(), series.max())
    assert np.average(found.mean, weights=np.diff(found.edges_s)) == pytest.approx(series.mean(), abs=1e-12)
    assert np.all((found.low <= found.mean) & (found.mean <= found.high))


def test_intervals_cover_the_truth():
    # About 95 % of the intervals of 60 records of the same process contain the mean over all records.
    found = [fades.fade_statistics(band_limited(seed, 60_000), RATE_HZ, [-2])[0] for seed in range(60)]
    for value, half in (("rate_per_s", "rate_ci95_per_s"), ("mean_s", "mean_ci95_s")):
        values, halves = (np.array([getattr(one, name) for one in found]) for name in (value, half))
        assert 0.85 <= np.mean(np.abs(values - values.mean()) <= halves) <= 1.0
        assert 1.0 < np.mean(halves) / np.std(values) < 3.0


@settings(max_examples=200)
@given(level=powers, threshold_db=st.floats(-40, 10), rate_hz=st.floats(0.1, 1e6))
def test_rate_times_mean_length_is_the_time_below(level, threshold_db, rate_hz):
    (found,) = fades.fade_statistics(level, rate_hz, [threshold_db])
    share = np.mean(np.asarray(level) < np.mean(level) * 10 ** (threshold_db / 10))

    assert found.time_below == pytest.approx(share)
    if found.fades:
        assert found.rate_per_s * found.mean_s == pytest.approx(share)
        assert found.median_s <= found.p90_s * (1 + 1e-12) <= found.p99_s * (1 + 1e-12) ** 2 <= found.max_s * (1 + 1e-12) ** 3


@settings(max_examples=100)
@given(level=powers, threshold_db=st.floats(-40, 10), data=st.data())
def test_reversal_keeps_the_statistics(level, threshold_db, data):
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(level), max_size=len(level))))
    # The sums run in different orders, so a sample at the threshold may fall to either side.
    clear = np.asarray(level)[~mask]
    if clear.sum() == 0 or np.any(np.isclose(clear, clear.mean() * 10 ** (threshold_db / 10), rtol=1e-9, atol=0)):
        return
    forward = power_trace(level, mask)
    backward = power.reverse(forward)
    one, other = (
        fades.fade_statistics(trace["power_w"], RATE_HZ, [threshold_db], blocked=power.blocked(trace))[0]
        for trace in (forward, backward)
    )

    for key in ("fades", "rate_per_s", "time_below", "mean_s", "median_s", "p90_s", "p99_s", "max_s"):
        assert getattr(one, key) == pytest.approx(getattr(other, key), nan_ok=True)
    np.testing.assert_array_equal(power.reverse(backward)["power_w"], forward["power_w"])


@settings(max_examples=60)
@given(seed=st.integers(0, 1000), exponent=st.floats(-9, -1), scale=st.floats(1e-15, 1e3), share=st.floats(0, 0.5))
def test_calibration_reaches_the_requested_rate_and_is_idempotent(seed, exponent, scale, share):
    rng = np.random.default_rng(seed)
    level = np.exp(rng.normal(0, 0.5, 2000)) * scale
    trace = power_trace(np.where(rng.random(2000) < share, 0.0, level), None)
    trace = power.with_blocked(trace, trace["power_w"] == 0)
    ber = 10**exponent
    done = power.calibrate(trace, RECEIVER, ber)
    again = power.calibrate(done, RECEIVER, ber)

    assert fades.long_term_ber(done["power_w"], RECEIVER, blocked=power.blocked(done)) == pytest.approx(ber, rel=1e-9)
    np.testing.assert_allclose(again["power_w"], done["power_w"], rtol=1e-9)
    np.testing.assert_array_equal(power.blocked(done), power.blocked(trace))
    nonzero = trace["power_w"] > 0
    gains = done["power_w"][nonzero] / trace["power_w"][nonzero]
    assert gains.max() / gains.min() == pytest.approx(1, rel=1e-12)


def test_blockages_are_cut_before_the_calibration_and_put_back():
    level = np.full(1000, 5e-8)
    level[200:300] = 5e-11
    mask = blockages.find(level, RATE_HZ)
    done = power.calibrate(power.with_blocked(power_trace(level), mask), RECEIVER, 1e-6)

    assert done["power_w"][0] == pytest.approx(RECEIVER.power_w(1e-6), rel=1e-9)
    assert done["power_w"][250] / done["power_w"][0] == pytest.approx(1e-3)
    assert done["blocked"].sum() == 100
    assert done.meta["calibration"]["ber"] == 1e-6


def test_calibration_gives_relative_power_its_unit():
    trace = Trace("power", {"power_w": [1.0, 0.8]}, {"duration_s": 1.0, "relative_power": True})

    assert power.is_relative(trace)
    assert not power.is_relative(power.calibrate(trace, RECEIVER, 1e-6))


def test_blockages_of_every_length_are_found_in_fading():
    level = band_limited(size=100_000, cut=0.01)
    spans = [(5000, 5060), (20_000, 20_500), (50_000, 54_000)]
    for start, end in spans:
        level[start:end] *= 1e-3
    found = blockages.find(level, RATE_HZ, min_length_s=0.05)

    expected = np.zeros(level.size, bool)
    for start, end in spans:
        expected[start:end] = True
    np.testing.assert_array_equal(found, expected)
    assert blockages.find(level, RATE_HZ, min_length_s=0.1).sum() == 4500
    assert blockages.find(level, RATE_HZ, edge_s=0.01).sum() == expected.sum() + 3 * 20


def test_a_slow_drift_is_not_a_blockage():
    drift = 10 ** np.linspace(-9, -6, 100_000)  # a rising pass: 30 dB in 100 s

    assert not blockages.find(drift, RATE_HZ).any()


def test_cut_keeps_the_samples_between_its_limits():
    trace = power_trace(np.arange(1.0, 101.0), np.arange(100) >= 90, rate_hz=10)
    part = power.cut(trace, 2.0, 9.5)

    assert part["power_w"].tolist() == list(range(21, 96))
    assert part.duration_s == 7.5
    assert power.blocked(part).sum() == 5


def test_averaging_keeps_the_mean_and_the_blockages():
    level = band_limited(size=10_000)
    mask = np.zeros(level.size, bool)
    mask[1000:2000] = True
    found = power.resample(power_trace(level, mask), 100.0)

    assert power.sample_rate_hz(found) == pytest.approx(100)
    np.testing.assert_allclose(found["power_w"], level.reshape(-1, 10).mean(axis=1))
    assert np.flatnonzero(power.blocked(found)).tolist() == list(range(100, 200))


@pytest.mark.parametrize("rate_hz", [700.0, 1500.0, 2000.0])
def test_resampling_follows_a_slow_power(rate_hz):
    pytest.importorskip("scipy")
    time_s = np.arange(5000) / RATE_HZ
    found = power.resample(power_trace(2 + np.sin(2 * np.pi * 5 * time_s), time_s >= 4.0), rate_hz)

    at_s = np.arange(found["power_w"].size) / rate_hz
    assert found["power_w"].size == round(5 * rate_hz)
    inner = (at_s > 0.1) & (at_s < 4.9)
    np.testing.assert_allclose(found["power_w"][inner], (2 + np.sin(2 * np.pi * 5 * at_s))[inner], atol=0.01)
    np.testing.assert_array_equal(power.blocked(found), at_s >= 4.0)
    assert found.duration_s == pytest.approx(5.0)


def test_resampling_never_gives_negative_power():
    pytest.importorskip("scipy")
    level = np.where(np.arange(3000) % 1000 < 500, 1.0, 0.0)

    assert power.resample(power_trace(level), 1500.0)["power_w"].min() >= 0


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda: fades.fade_statistics([1.0, -1.0], 1.0, [-3]), "the power is -1 at sample 1"),
        (lambda: fades.fade_statistics([1.0, 2.0, float("nan")], 1.0, [-3]), "the power is nan at sample 2"),
        (lambda: fades.fade_statistics([0.0, 0.0], 1.0, [-3]), "the power is 0 throughout"),
        (lambda: fades.fade_statistics([], 1.0, [-3]), "the trace is empty"),
        (lambda: fades.scintillation_index([1.0, 2.0], blocked=[1, 1]), "no sample is left"),
        (lambda: fades.scintillation_index([1.0, 2.0], blocked=[1]), "1 values of blocked for 2 samples"),
        (lambda: blockages.find([1.0], 1.0, below_db=3), "below_db is 3"),
        (lambda: blockages.mark(10, 1.0, [(5.0, 5.0)]), "blockage from 5 s to 5 s"),
        (lambda: blockages.mark(10, 1.0, [(12.0, 13.0)]), "blockage from 12 s to 13 s"),
        (lambda: power.cut(power_trace([1.0, 1.0]), 1.0, 2.0), "nothing to cut from 1 s to 2 s"),
        (lambda: power.cut(power_trace(np.ones(2000)), 1.0, 3.0), "nothing to cut from 1 s to 3 s"),
        (lambda: power.cut(power_trace(np.ones(2000)), -1.0, 1.0), "nothing to cut from -1 s to 1 s"),
        (lambda: power.resample(power_trace([1.0]), 0.0), "0 Hz gives 0 samples"),
        (lambda: power.resample(power_trace(np.ones(10)), 1e18), "samples"),
        (lambda: power.resample(power_trace(np.ones(10_000)), 1000 * np.pi / 3.1), "no filter takes 1000 Hz"),
        (lambda: power.calibrate(power_trace([1.0, 1.0]), RECEIVER, 0.5), "error rate of 0.5 cannot be reached"),
        (lambda: power.calibrate(power_trace([1.0, 1.0], [1, 1]), RECEIVER, 1e-6), "all 2 samples are blocked"),
        (lambda: power.calibrate(power_trace([1.0, 0.0, 1.0, 1.0]), RECEIVER, 1e-6), "1 samples (the first is sample 1)"),
        (lambda: power.calibrate(power_trace([0.0, 0.0]), RECEIVER, 0.1), "2 samples (the first is sample 0)"),
        (lambda: power.sample_rate_hz(Trace("packet-loss", {"lost": [1]})), "a packet-loss trace, where power is wanted"),
    ],
)  # fmt: skip
def test_impossible_arguments_are_refused(act, said):
    with pytest.raises(TraceError) as caught:
        act()
    assert said in caught.value.message
    assert caught.value.remedy
