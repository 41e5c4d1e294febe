"""Statistics of call drops, on synthetic calls whose truth is known."""

from __future__ import annotations

import itertools
import math
import tomllib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farlink.channels.calls import causes, clusters, goodness, process, replay, samples
from farlink.channels.calls.availability import availability
from farlink.channels.calls.distributions import DISTRIBUTIONS, log_likelihood, markov_states
from farlink.channels.calls.fits import Fit, fit, mean_at_least_s
from farlink.channels.calls.links import Call, Link
from farlink.channels.calls.samples import sample
from farlink.channels.calls.study import Part, judged
from farlink.errors import JournalError

scipy_stats = pytest.importorskip("scipy.stats")

TRUTH = {
    "exponential": {"mean_s": 3000.0},
    "weibull": {"shape": 0.6, "scale_s": 3000.0},
    "two-state-markov": {"p_short": 0.4, "short_s": 300.0, "long_s": 6000.0},
}


def times_of(kind, count, rng):
    return DISTRIBUTIONS[kind].draw(np.array(list(TRUTH[kind].values())), rng, count)


def censored(times_s, limits_s):
    return sample("up", np.minimum(times_s, limits_s), times_s <= limits_s)


def link_of(*calls, name="m1", first_s=0.0, last_s=None, snr=()):
    link = Link(name, list(calls), list(snr))
    link.first_s, link.last_s = first_s, calls[-1].end_s if last_s is None else last_s
    return link


def poisson_link(rng, *, mean_s=3000.0, span_s=86_400.0, name="m1", ended=0.0, redial_s=30.0):
    """A synthetic link that drops at a constant rate while it is up; some of its calls end on purpose."""
    calls, time_s = [], 0.0
    while time_s < span_s:
        up_s = rng.exponential(mean_s)
        calls.append(Call(time_s, time_s + up_s, "ended" if rng.random() < ended else "dropped"))
        time_s += up_s + redial_s
    return link_of(*calls, name=name, last_s=span_s)


# Fits


@pytest.mark.parametrize("kind", DISTRIBUTIONS)
@pytest.mark.parametrize("is_censored", [False, True])
def test_a_fit_recovers_the_truth_within_its_intervals(kind, is_censored):
    rng = np.random.default_rng(2)
    times_s = times_of(kind, 2000, rng)
    found = fit(censored(times_s, rng.exponential(6000, 2000)) if is_censored else sample("up", times_s), kind)

    assert found.intervals.keys() == TRUTH[kind].keys()
    for name, truth in TRUTH[kind].items():
        low, high = found.intervals[name]
        assert low < truth < high
        assert high - low < truth  # narrow enough to be useful
    assert found.mean_ci_s[0] < DISTRIBUTIONS[kind].mean_s(np.array(list(TRUTH[kind].values()))) < found.mean_ci_s[1]


@pytest.mark.parametrize(("kind", "low"), [("exponential", 0.93), ("weibull", 0.90)])
@pytest.mark.parametrize("is_censored", [False, True])
def test_intervals_cover_the_truth_as_often_as_they_say(kind, low, is_censored):
    rng = np.random.default_rng(7)
    trials, hits = 300, 0
    for _ in range(trials):
        times_s = times_of(kind, 60, rng)
        found = fit(censored(times_s, rng.exponential(4000, 60)) if is_censored else sample("up", times_s), kind)
        name, truth = next(iter(TRUTH[kind].items()))
        hits += found.intervals[name][0] <= truth <= found.intervals[name][1]

    assert low <= hits / trials <= 0.985


def test_censored_calls_must_be_neither_left_out_nor_counted_as_drops():
    """Both leaving out calls that ended on purpose and counting them as drops give a wrong mean."""
    rng = np.random.default_rng(1)
    true_s, planned_s = rng.exponential(3000, 3000), rng.exponential(300, 3000)
    whole = censored(true_s, planned_s)

    assert fit(whole).mean_s == pytest.approx(3000, rel=0.15)
    assert fit(sample("up", whole.times_s[whole.is_observed])).mean_s < 600
    assert fit(sample("up", whole.times_s)).mean_s < 600


def test_exponential_interval_is_the_exact_one():
    found = fit(sample("up", [1000.0] * 10))

    assert found.mean_ci_s[0] == pytest.approx(20_000 / scipy_stats.chi2.ppf(0.975, 20))
    assert found.mean_ci_s[1] == pytest.approx(20_000 / scipy_stats.chi2.ppf(0.025, 20))


@pytest.mark.parametrize("is_censored", [False, True])
def test_weibull_matches_scipy(is_censored):
    rng = np.random.default_rng(3)
    times_s = times_of("weibull", 100, rng)
    one = censored(times_s, rng.exponential(4000, 100)) if is_censored else sample("up", times_s)

    found = fit(one, "weibull")

    data = scipy_stats.CensoredData(uncensored=one.times_s[one.is_observed], right=one.times_s[~one.is_observed])
    shape, _, scale = scipy_stats.weibull_min.fit(data, floc=0)
    assert found.parameters["shape"] == pytest.approx(shape, rel=1e-3)
    assert found.parameters["scale_s"] == pytest.approx(scale, rel=1e-3)


@pytest.mark.parametrize("kind", DISTRIBUTIONS)
@settings(max_examples=30)
@given(seed=st.integers(0, 10_000), count=st.integers(25, 80))
def test_a_fit_has_the_highest_likelihood(kind, seed, count):
    rng = np.random.default_rng(seed)
    times_s = times_of(kind, count, rng)
    one = censored(times_s, rng.exponential(8000, count))
    family = DISTRIBUTIONS[kind]
    found = fit(one, kind)
    if not found.is_fitted:
        assert one.events < family.fewest
        return

    def likelihood(row):
        return float(log_likelihood(family, row, one.times_s, one.is_observed))

    assert likelihood(found.row) >= likelihood(np.array(list(TRUTH[kind].values()))) - 0.02
    for factor in (0.97, 1.03):
        for index in range(found.row.size):
            row = found.row.copy()
            row[index] = min(row[index] * factor, 1 - 1e-9) if family.parameters[index] == "p_short" else row[index] * factor
            assert likelihood(found.row) >= likelihood(row) - 0.02


@pytest.mark.parametrize("kind", DISTRIBUTIONS)
def test_density_is_the_slope_of_the_survival(kind):
    found = Fit(kind, TRUTH[kind])
    times_s = np.linspace(50, 9000, 40)

    slope = (found.survival(times_s - 0.01) - found.survival(times_s + 0.01)) / 0.02

    np.testing.assert_allclose(found.density(times_s), slope, rtol=1e-4)
    mean_s = np.trapezoid(found.survival(np.linspace(0.001, 400_000, 400_000)), dx=1.0)
    assert mean_s == pytest.approx(float(found.family.mean_s(found.row)), rel=0.01)


def test_the_markov_chain_of_a_mixture_reproduces_its_times():
    """Simulate drops in the bad state only: the times between them follow the mixture."""
    p_short, short_s, long_s = 0.4, 300.0, 6000.0
    states = markov_states(p_short, short_s, long_s)
    rng = np.random.default_rng(5)
    drops, time_s = [], 0.0
    for _ in range(20_000):
        end_s = time_s + rng.exponential(states["bad_s"])
        count = rng.poisson((end_s - time_s) / states["bad_drop_interval_s"])
        drops += sorted(rng.uniform(time_s, end_s, count).tolist())
        time_s = end_s + rng.exponential(states["good_s"])

    found = np.diff(drops)

    assert found.mean() == pytest.approx(p_short * short_s + (1 - p_short) * long_s, rel=0.03)
    mixture = Fit("two-state-markov", {"p_short": p_short, "short_s": short_s, "long_s": long_s})
    for limit_s in (100.0, 1000.0, 10_000.0):
        assert np.mean(found > limit_s) == pytest.approx(float(mixture.survival(np.array([limit_s]))[0]), abs=0.012)


def test_two_states_that_coincide_have_no_interval():
    found = fit(sample("up", times_of("exponential", 200, np.random.default_rng(1))), "two-state-markov")

    assert found.mean_s == pytest.approx(3000, rel=0.2)
    assert found.reason.startswith("no interval") or found.aic > fit(sample("up", found.row)).aic


@pytest.mark.parametrize(("kind", "needed"), [("exponential", 2), ("weibull", 5), ("two-state-markov", 20)])
def test_too_few_drops_for_a_fit(kind, needed):
    few = sample("up", np.arange(1.0, needed) * 100)

    found = fit(few, kind)

    assert not found.is_fitted
    assert found.reason == f"needs {needed} drops, there are {needed - 1}"
    assert goodness.anderson_darling(few, found).reason == goodness.chi_square(few, found).reason == found.reason
    with pytest.raises(JournalError, match="no distribution 'gamma'"):
        fit(few, "gamma")


def test_without_drops_the_rate_has_an_upper_bound():
    assert mean_at_least_s(3 * 3600) == pytest.approx(3 * 3600 / -math.log(0.05))


# Goodness of fit


def rejections(truth, kind, *, count, trials, is_censored, seed):
    rng = np.random.default_rng(seed)
    found = np.zeros(3)
    for trial in range(trials):
        times_s = times_of(truth, count, rng)
        one = censored(times_s, rng.exponential(4000, count)) if is_censored else sample("up", times_s)
        fitted = fit(one, kind)
        drawn = goodness.draw(one, fitted, count=99, seed=trial)
        tests = (
            goodness.anderson_darling(one, fitted, drawn=drawn),
            goodness.chi_square(one, fitted, drawn=drawn),
            goodness.chi_square(one, fitted, drawn=drawn, widths="probable"),
        )
        found += [test.is_accepted is False for test in tests]
    return found / trials


@pytest.mark.parametrize("kind", ["exponential", "weibull"])
@pytest.mark.parametrize("is_censored", [False, True])
def test_correct_fits_are_rejected_one_time_in_twenty(kind, is_censored):
    found = rejections(kind, kind, count=80, trials=150, is_censored=is_censored, seed=4)

    assert (found <= 0.11).all()  # 0.05 and three and a half standard deviations


def test_correct_fits_of_mostly_censored_calls_are_not_rejected_more_often():
    """With nearly all calls censored, the test ignores the few longest times, which would reject one correct fit in ten."""
    rng = np.random.default_rng(5)
    trials, rejected = 300, 0
    for trial in range(trials):
        one = censored(times_of("exponential", 400, rng), rng.exponential(300, 400))
        found = fit(one)
        rejected += goodness.anderson_darling(one, found, drawn=goodness.draw(one, found, count=99, seed=trial)).p <= 0.05

    assert rejected / trials <= 0.07


@pytest.mark.parametrize("is_censored", [False, True])
def test_wrong_fits_are_rejected(is_censored):
    clear = rejections("weibull", "exponential", count=80, trials=40, is_censored=is_censored, seed=5)
    mixed = rejections("two-state-markov", "exponential", count=80, trials=40, is_censored=is_censored, seed=6)

    assert (clear >= 0.6).all()
    assert (mixed >= 0.8).all()
    assert clear[0] >= clear[1] - 0.05  # Anderson and Darling's is no worse than the chi-square test of the thesis


def test_statistic_matches_scipy_without_censoring():
    times_s = times_of("exponential", 50, np.random.default_rng(9)) + 1
    one = sample("up", times_s)
    found = fit(one)

    own = goodness.statistic(found, found.row, one.times_s[None], one.is_observed[None])

    theirs = scipy_stats.anderson(times_s, "expon", method="interpolate").statistic
    assert float(own[0]) == pytest.approx(theirs, rel=1e-9)


def test_kaplan_meier_matches_scipy():
    rng = np.random.default_rng(3)
    one = censored(np.ceil(rng.exponential(50, 200)), np.ceil(rng.exponential(80, 200)))

    times_s, alive = goodness.kaplan_meier(one)

    data = scipy_stats.CensoredData(uncensored=one.times_s[one.is_observed], right=one.times_s[~one.is_observed])
    theirs = scipy_stats.ecdf(data).sf
    np.testing.assert_allclose(alive, theirs.evaluate(times_s), atol=1e-12)


def test_chi_square_has_fifteen_bins_given_enough_drops():
    one = sample("up", times_of("exponential", 1500, np.random.default_rng(1)))
    found = fit(one)

    probable = goodness.chi_square(one, found, widths="probable")
    equal = goodness.chi_square(one, found)

    assert (probable.bins, probable.degrees) == (15, 13)
    assert 6 <= equal.bins <= 15
    edges = -found.mean_s * np.log1p(-np.arange(1, 15) / 15)
    counts = np.histogram(one.times_s, np.concatenate(([0], edges, [np.inf])))[0]
    assert probable.statistic == pytest.approx(float(((counts - 100) ** 2 / 100).sum()), rel=0.03)
    assert probable.p == pytest.approx(float(scipy_stats.chi2.sf(probable.statistic, 13)))


def test_too_few_drops_for_a_test():
    few = sample("up", np.arange(1.0, 8.0) * 100)

    assert goodness.chi_square(few, fit(few)).reason == "needs 15 drops, there are 7"
    assert goodness.chi_square(few, fit(few, "weibull")).reason == "needs 20 drops, there are 7"
    assert goodness.anderson_darling(few, fit(few)).reason == "needs 8 drops, there are 7"
    assert goodness.accepted_means_s(few) is None
    with pytest.raises(JournalError, match="no bins of widths 'wide'"):
        goodness.chi_square(few, fit(few), widths="wide")


def test_the_thesis_accepts_many_rates():
    """With 394 drops, as many as in Greenland, fifteen bins leave a wide choice of rates; the true one is in it."""
    one = sample("inter-drop", times_of("exponential", 394, np.random.default_rng(11)))

    low, high = goodness.accepted_means_s(one)

    assert low < 3000 < high
    assert high / low > 1.1
    assert goodness.chi_square(one, Fit("exponential", {"mean_s": high * 1.1})).is_accepted is False


def test_same_seed_same_probability():
    one = sample("up", times_of("weibull", 60, np.random.default_rng(3)))

    first, again, other = (
        goodness.anderson_darling(one, fit(one), drawn=goodness.draw(one, fit(one), seed=s)).p for s in (1, 1, 2)
    )

    assert first == again
    assert other == pytest.approx(first, abs=0.1)


# Samples


def test_samples_of_a_link():
    calls = (
        Call(0, 100, "dropped"),
        Call(150, 250, "ended"),
        Call(300, 350, "dropped"),
        Call(350 + 4000, 350 + 4060, "open"),
    )
    links = [link_of(*calls)]

    assert samples.up_times(links).times_s.tolist() == [100, 100, 50, 60]
    assert samples.up_times(links).is_observed.tolist() == [True, False, True, False]
    assert samples.airtimes(links).times_s.tolist() == [100, 150, 60]
    assert samples.airtimes(links).is_observed.tolist() == [True, True, False]
    assert samples.inter_drop_times(links).times_s.tolist() == [250]
    assert samples.redial_times(links).times_s.tolist() == [50]
    assert "1 longer than 3600 s" in samples.redial_times(links).note
    assert samples.redial_times(links, 1e4).times_s.tolist() == [50, 4000]


def test_a_link_that_never_came_back_is_censored():
    one = samples.redial_times([link_of(Call(0, 100, "dropped"), last_s=700)])

    assert (one.times_s.tolist(), one.is_observed.tolist()) == ([600], [False])


def test_bundle_counts_while_all_logs_run():
    first = link_of(Call(0, 100, "dropped"), Call(150, 500, "dropped"), name="a", first_s=0, last_s=900)
    second = link_of(Call(90, 300, "dropped"), Call(310, 700, "dropped"), name="b", first_s=90, last_s=700)

    assert samples.bundle_drop_times_s([first, second]).tolist() == [100, 300, 500, 700]
    assert samples.bundle_inter_drop_times([first, second]).times_s.tolist() == [200, 200, 200]
    assert samples.bundle_span_s([first]) is None
    assert samples.bundle_span_s([first, link_of(Call(2000, 2100, "dropped"), first_s=2000)]) is None


def test_times_of_whole_seconds_may_be_0():
    assert sample("up", [0.0, 3.0]).times_s.tolist() == [0.5, 3.0]
    with pytest.raises(JournalError, match="negative"):
        sample("up", [-1.0])


def test_a_bundle_of_links_drops_as_often_as_all_of_them():
    """Zaghloul, section 5.3: a bundle of n links drops at n times the rate of one."""
    rng = np.random.default_rng(8)
    links = [poisson_link(rng, name=f"m{index}", redial_s=0.0, span_s=20 * 86_400) for index in range(8)]

    one = fit(samples.airtimes(links)).mean_s
    bundle = fit(samples.bundle_inter_drop_times(links))

    assert bundle.mean_ci_s[0] < one / 8 < bundle.mean_ci_s[1]


def test_availability():
    first = link_of(Call(0, 60, "dropped"), Call(70, 100, "open"), name="a", last_s=100)
    second = link_of(Call(0, 50, "dropped"), Call(80, 100, "open"), name="b", last_s=100)

    found = availability([first, second])

    assert found.mean_up == pytest.approx(1.6)
    assert found.all_up == pytest.approx(0.7)
    assert found.any_up == pytest.approx(0.9)
    assert found.all_up_independent == pytest.approx(0.9 * 0.7)
    assert found.any_up_independent == pytest.approx(1 - 0.1 * 0.3)
    assert availability([first]) is None


# Clusters


def clustered_link(rng, name="m1"):
    """A link with periods of bad weather, in which it drops twenty times as often."""
    calls, time_s, drop_s = [], 0.0, 6000.0
    for _ in range(500):
        if rng.random() < 0.12:
            drop_s = 300.0 if drop_s == 6000.0 else 6000.0
        up_s = min(rng.exponential(drop_s), 1200.0)
        calls.append(Call(time_s, time_s + up_s, "ended" if up_s == 1200.0 else "dropped"))
        time_s += up_s + 60
    return link_of(*calls, name=name)


def test_existing_clusters_are_found():
    found = {one.question: one for one in clusters.clusterings([clustered_link(np.random.default_rng(2))])}

    assert found["dispersion"].is_clustered
    assert found["dispersion"].value > 1.5
    assert found["serial correlation"].is_clustered
    assert found["runs of calls"].is_clustered
    details = found["runs of calls"].details
    assert details["p_drop_after_drop_low"] > details["p_drop_after_end_high"]


def test_constant_rates_are_rarely_reported_as_clusters():
    rng = np.random.default_rng(12)
    said: dict[str, list[bool]] = {}
    for _ in range(80):
        links = [poisson_link(rng, name=f"m{index}", ended=0.3) for index in range(3)]
        for one in [*clusters.clusterings(links), clusters.links_together(links, shifts=99)]:
            said.setdefault(one.question, []).append(bool(one.is_clustered))

    assert len(said) == 6
    assert all(np.mean(found) <= 0.1 for found in said.values()), said


def test_pauses_between_groups_of_calls_are_not_clusters():
    """Calls of minutes, every few hours: by wall-clock time the drops of one surfacing would be a cluster."""
    rng = np.random.default_rng(3)
    calls, time_s = [], 0.0
    for _ in range(150):
        for _ in range(6):
            up_s = rng.exponential(1500)
            calls.append(Call(time_s, time_s + min(up_s, 300), "dropped" if up_s < 300 else "ended"))
            time_s += min(up_s, 300) + 60
        time_s += 20_000

    found = clusters.clusterings([link_of(*calls)])

    assert not any(one.is_clustered for one in found)


def test_links_that_drop_together_and_links_that_differ():
    rng = np.random.default_rng(4)
    drops = np.sort(rng.uniform(0, 86_400, 30))

    def link(name, shift):
        edges = np.concatenate(([0.0], drops + shift))
        return link_of(*(Call(a + 5, b, "dropped") for a, b in itertools.pairwise(edges)), name=name, last_s=86_500)

    together = clusters.links_together([link("a", 0.0), link("b", 3.0)])
    assert together.is_clustered
    assert together.value >= 30 > together.expected * 5
    unlike = clusters.links_alike([poisson_link(rng, name="a"), poisson_link(rng, mean_s=500, name="b")])
    assert unlike.is_clustered
    assert unlike.details["longest_mean_s"] / unlike.details["shortest_mean_s"] > 3


def test_too_few_drops_for_clusters_say_how_many_it_takes():
    reasons = {
        one.question: one.reason for one in clusters.clusterings([link_of(Call(0, 10, "dropped"), Call(20, 30, "ended"))])
    }

    assert reasons["dispersion"] == "needs 20 drops of one link, there are 1"
    assert reasons["serial correlation"] == "needs 12 drops, there are 1"
    assert reasons["runs of calls"] == "needs 20 calls, there are 2"


# Causes


def polled(start_s, end_s, ratio_db=8.0, every_s=4.0):
    return [(time_s, ratio_db) for time_s in np.arange(start_s, end_s, every_s).tolist()]


def test_low_signal_before_a_drop():
    """Zaghloul, section 5.1: below 0 dB for 16 s, or below 2 dB for 20 s, a call drops."""
    snr = [*polled(0, 80), *polled(80, 100, -1.0)]  # 20 s below 0, then lost
    snr += [*polled(200, 280), *polled(280, 302, 1.0)]  # 22 s below 2, then lost
    snr += [*polled(400, 490), *polled(490, 498, -1.0)]  # 10 s only, then lost
    snr += [*polled(600, 640), *polled(640, 664, -1.0), *polled(664, 700)]  # survived
    calls = [Call(0, 100, "dropped"), Call(200, 302, "dropped"), Call(400, 500, "dropped"), Call(600, 700, "ended")]
    found = {one.name: (one.drops, one.of) for one in causes.causes([link_of(*calls, snr=snr)])}

    assert found["SNR below 0 dB for 16 s"] == (1, 3)
    assert found["SNR below 2 dB for 20 s"] == (2, 3)
    assert found["of the times that SNR was below 0 dB for 16 s"] == (1, 2)


def with_handovers(drops_s, *, seen=(0, 1, 3, 4, 7, 9), false_s=(1430.0,)):
    """A link that is polled every 4 s; answers at some of the handovers, every 603 s, come late."""
    late = [100.0 + 603 * step for step in seen] + list(false_s)
    snr, time_s = [], 0.0
    while time_s < 7200:
        time_s += 7.0 if any(time_s < at <= time_s + 4 for at in late) else 4.0
        snr.append((time_s, 8.0))
    edges = [0.0, *drops_s]
    calls = [Call(a + 0.5, b, "dropped") for a, b in itertools.pairwise(edges)]
    return link_of(*calls, Call(edges[-1] + 0.5, 7200, "open"), snr=snr)


def test_handovers_are_detected_by_late_answers_and_interpolated():
    found = causes.handovers(with_handovers([]))

    assert [round((one.time_s - 100) / 603) for one in found] == list(range(10))
    assert all(abs(one.time_s - 100 - 603 * step) < 15 for step, one in enumerate(found))
    assert [step for step, one in enumerate(found) if not one.is_observed] == [2, 5, 6, 8]


def test_drops_are_matched_with_handovers():
    at_handover = [100 + 603 * step + 12.0 for step in (2, 5, 8)]
    link = with_handovers(sorted([*at_handover, 950.0, 2200.0, 4700.0]))

    (cause,) = [one for one in causes.causes([link]) if "handover" in one.name]

    assert (cause.drops, cause.of) == (3, 6)
    assert cause.by_chance == pytest.approx(6 * 60 / 603, rel=0.02)
    assert cause.p == pytest.approx(float(scipy_stats.binom.sf(2, 6, 60 / 603)), rel=0.1)


def test_a_tenth_of_drops_matches_handovers_by_chance():
    """Drops independent of handovers: with a handover every ten minutes, a tenth of them fall within its minute."""
    rng = np.random.default_rng(6)
    shares = []
    for _ in range(20):
        link = with_handovers(np.sort(rng.uniform(150, 5000, 25)).tolist())
        (cause,) = [one for one in causes.causes([link]) if "handover" in one.name]
        shares.append(cause.drops / cause.of)

    assert np.mean(shares) == pytest.approx(0.1, abs=0.03)


def test_named_causes_and_bars():
    calls = [Call(0, 10, "dropped", "NO CARRIER", 1), Call(20, 30, "dropped", "LCP echo", 1), Call(40, 50, "ended", "", 5)]
    calls += [Call(60 + 20 * index, 70 + 20 * index, "ended", "", 5) for index in range(20)]
    found = {one.name: one for one in causes.causes([link_of(*calls)])}

    assert (found["NO CARRIER"].drops, found["LCP echo"].drops) == (1, 1)
    assert found["1 bars at the beginning"].p < 0.01
    assert found["5 bars at the beginning"].drops == 0
    assert not any("SNR" in name or "handover" in name for name in found)


def test_a_value_beyond_the_range_of_scenarios_is_reported_with_its_bound():
    rng = np.random.default_rng(8)
    calls, time_s = [], 1e9
    for up_s in rng.exponential(3e7, 30):
        calls.append(Call(time_s, time_s + up_s, "dropped"))
        time_s += up_s + 30
    link = link_of(*calls)
    part = Part(
        "m", [link], {one.name: judged(one, replicates=49) for one in (samples.airtimes([link]), samples.redial_times([link]))}
    )

    text = process.scenario_text(part)

    assert "# up: the mean of" in text
    assert "above the 1e+07 s that a scenario takes" in text
    assert "\nup = " not in text
    assert tomllib.loads(text)["link"]["channel"]["redial"]["mean_s"] == 30


def test_a_log_longer_than_any_scenario_is_refused():
    link = link_of(Call(1e9, 1e9 + 9e6, "dropped"), Call(1e9 + 1.1e7, 1e9 + 1.2e7, "open"), first_s=1e9)

    with pytest.raises(JournalError, match=r"m1: the log is 139 d long, and the times of a scenario end at 1e\+07 s"):
        replay.scenario_text([link])


def test_a_shape_beyond_the_range_of_scenarios_is_reported_with_its_bound():
    """A link manager that redials after exactly half a minute."""
    rng = np.random.default_rng(9)
    calls, time_s = [], 1e9
    for up_s in rng.exponential(3000, 40):
        calls.append(Call(time_s, time_s + up_s, "dropped"))
        time_s += up_s + 30 + rng.uniform(-0.01, 0.01)
    link = link_of(*calls)
    part = Part(
        "m", [link], {one.name: judged(one, replicates=49) for one in (samples.airtimes([link]), samples.redial_times([link]))}
    )
    shape = part.times["redial"].of("weibull").fit.parameters["shape"]

    text = process.scenario_text(part)

    assert shape > 100
    assert f"# redial: a Weibull distribution of shape {shape:.3g}" in text
    assert "a scenario takes shapes from 0.1 to 100" in text
    assert tomllib.loads(text)["link"]["channel"]["redial"] == {
        "distribution": "exponential",
        "mean_s": pytest.approx(30, abs=0.1),
    }
