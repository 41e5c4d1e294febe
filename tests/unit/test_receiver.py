"""Receivers: equations (1) and (2) of Epple against SciPy, and their inverse."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farlink import _core
from farlink.channels.receiver import Receiver, ReceiverError, receivers

special = pytest.importorskip("scipy.special")


def reference_ber(power_w, characteristic_power_w, form_factor):
    u = np.asarray(power_w) / characteristic_power_w
    return special.erfc(u / (1 + np.sqrt(1 + form_factor * u)) / math.sqrt(2)) / 2


def reference_power_w(ber, characteristic_power_w, form_factor):
    q = math.sqrt(2) * special.erfcinv(2 * np.asarray(ber))
    return characteristic_power_w * (2 * q + form_factor * q**2)


@pytest.mark.published("Epple, section 2.2; eq (1) at a bit error rate of 1e-6")
def test_reference_receiver_reaches_1e_6_at_37_nw():
    receiver = Receiver.named("frm5w621")

    assert (receiver.characteristic_power_w, receiver.form_factor) == (1.35e-9, 0.8)
    assert (receiver.rate_bps, receiver.wavelength_m) == (622e6, 1550e-9)
    assert receiver.power_w(1e-6) / receiver.characteristic_power_w == pytest.approx(27.58, abs=0.01)
    assert receiver.power_w(1e-6) == pytest.approx(37.2e-9, abs=0.05e-9)
    assert receiver.sensitivity_dbm(1e-6) == pytest.approx(10 * math.log10(37.2e-6), abs=0.01)


@pytest.mark.parametrize("form_factor", [0.0, 0.8, 30.0])
def test_the_engine_agrees_with_scipy(form_factor):
    power_w = np.concatenate(([0.0], np.geomspace(1e-12, 1e-6, 4001)))
    ber = np.geomspace(1e-15, 0.4999, 2001)

    found = _core.receiver_ber(power_w, 1.35e-9, form_factor)
    expected = reference_ber(power_w, 1.35e-9, form_factor)
    seen = expected > 1e-290
    np.testing.assert_allclose(found[seen], expected[seen], rtol=1e-9)
    assert np.all(found[~seen] < 1e-280)
    np.testing.assert_allclose(
        _core.receiver_power(ber, 1.35e-9, form_factor), reference_power_w(ber, 1.35e-9, form_factor), rtol=1e-7
    )


@given(ber=st.floats(1e-14, 0.49), form_factor=st.floats(0, 50), characteristic_power_w=st.floats(1e-12, 1e-3))
def test_required_power_is_the_inverse_of_ber(ber, form_factor, characteristic_power_w):
    receiver = Receiver("any", characteristic_power_w, form_factor)

    assert receiver.ber(receiver.power_w(ber)) == pytest.approx(ber, rel=1e-9)


@given(power_w=st.lists(st.floats(0, 1e-6), min_size=2, max_size=20))
def test_more_power_never_gives_more_errors(power_w):
    ber = Receiver("any", 1.35e-9, 0.8).ber(np.sort(power_w))

    assert np.all(np.diff(ber) <= 0)
    assert np.all((ber >= 0) & (ber <= 0.5))


@settings(max_examples=50)
@given(sensitivity_dbm=st.floats(-70, 0), ber=st.floats(1e-12, 1e-2), form_factor=st.floats(0, 20))
def test_a_receiver_from_a_data_sheet_has_its_sensitivity(sensitivity_dbm, ber, form_factor):
    receiver = Receiver.from_sensitivity(sensitivity_dbm, ber, form_factor, 2.5e9)

    assert receiver.sensitivity_dbm(ber) == pytest.approx(sensitivity_dbm, abs=1e-6)
    assert receiver.rate_bps == 2.5e9


def test_zero_power_gives_a_ber_of_one_half():
    assert Receiver("any", 1e-9, 0.8).ber(0.0) == 0.5


def test_results_keep_the_shape_of_the_argument():
    receiver = Receiver("any", 1e-9, 0.8)

    assert receiver.ber(np.full((2, 3), 1e-8)).shape == (2, 3)
    assert isinstance(receiver.ber(1e-8), float)


def test_sensitivity_curve_falls():
    power_dbm, ber = Receiver("any", 1.35e-9, 0.8).sensitivity_curve(points=30)

    assert power_dbm.size == ber.size == 30
    assert np.all(np.diff(power_dbm) > 0)
    assert np.all(np.diff(ber) < 0)


def test_another_data_rate_gives_a_warning():
    receiver = Receiver.named("frm5w621")

    assert receiver.rate_warning(622.08e6) is None
    warning = receiver.rate_warning(1e9)
    assert warning is not None
    assert "622 Mb/s" in warning
    assert "1 Gb/s" in warning
    assert Receiver("any", 1e-9, 0.8).rate_warning(1e9) is None


def test_every_named_receiver_has_a_source():
    for receiver in receivers():
        assert receiver.source
        assert 0 < receiver.power_w(1e-9) < 1e-3


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Receiver("r", 0.0, 0.8), "characteristic_power_w is 0 W"),
        (lambda: Receiver("r", math.nan, 0.8), "characteristic_power_w is nan W"),
        (lambda: Receiver("r", 1e-9, -1.0), "form_factor is -1"),
        (lambda: Receiver("r", 1e-9, 0.8, rate_bps=0.0), "rate_bps is 0"),
        (lambda: Receiver.named("frm5w62"), "there is no receiver 'frm5w62'"),
        (lambda: Receiver.parse("1,2,3,4"), "'1,2,3,4' is not two or three numbers"),
        (lambda: Receiver.parse("a,b"), "'a,b' is not two or three numbers"),
        (lambda: Receiver.from_sensitivity(-30, 0.5, 0.8), "a bit error rate of 0.5"),
        (lambda: Receiver("r", 1e-9, 0.8).power_w(0.0), "a bit error rate of 0"),
        (lambda: Receiver("r", 1e-9, 0.8).ber([1e-9, -1e-9]), "the power is -1e-09 W at sample 1"),
        (lambda: Receiver("r", 1e-9, 0.8).ber([1e-9, 0, math.nan]), "the power is nan W at sample 2"),
    ],
)
def test_invalid_receivers_are_refused(make, said):
    with pytest.raises(ReceiverError) as caught:
        make()
    assert said in caught.value.message
    assert caught.value.remedy


def test_an_unknown_receiver_names_the_nearest():
    with pytest.raises(ReceiverError) as caught:
        Receiver.named("FRM5W622")
    assert "did you mean 'frm5w621'?" in caught.value.remedy
