"""farlink's decoders beside libfec's: bit error rates of K=7 rate 1/2, Reed-Solomon (255, 223) word by word.

Both sides decode the same frames: the same random data, the same noise.
"""

from __future__ import annotations

import math

import pytest

np = pytest.importorskip("numpy")
frames = pytest.importorskip("tests.peers.frames")
libfec = pytest.importorskip("tests.peers.libfec")

from tests.peers.conftest import ALL_CELLS  # noqa: E402

_MISSING = libfec.missing()
pytestmark = [pytest.mark.peer("libfec"), pytest.mark.skipif(_MISSING is not None, reason=str(_MISSING))]

EVENTS_MIN = 1000
FRAME_BITS = 8192
#: Frames that are made at once, and how many of these lots there may be: 160 Mbit.
LOT = 512
LOTS_MAX = 40

POINTS = [
    (2.0, "soft"),
    (2.5, "soft"),
    (3.0, "soft"),
    (3.5, "soft"),
    (4.0, "hard"),
    (4.5, "hard"),
    (5.0, "hard"),
    (5.5, "hard"),
]
SHORT = {2.0, 4.0}

#: Trace-back over the whole frame, as libfec does it.
WHOLE_FRAME = f"serial:{FRAME_BITS}"


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> libfec.Programs:
    return libfec.Programs.build(tmp_path_factory.mktemp("libfec"))


def _errors(programs: libfec.Programs, decoders: list[str], ebn0_db: float, kind: str) -> dict[str, libfec.Errors]:
    """Errors of each decoder on the same frames, enough of these for the events that are asked for."""
    errors: dict[str, libfec.Errors] = {}
    file = programs.folder / "frames"
    for lot in range(LOTS_MAX):
        sent = frames.noisy(
            file, libfec.K7, bits=FRAME_BITS, count=LOT, ebn0_db=ebn0_db, is_hard=kind == "hard", seed=1000 + lot
        )
        for decoder in decoders:
            made = libfec.Errors.count(programs.viterbi(decoder, file, LOT, FRAME_BITS), sent)
            errors[decoder] = errors[decoder] + made if decoder in errors else made
        if all(one.events >= EVENTS_MIN for one in errors.values()):
            return errors
    raise AssertionError(f"too few error events: { ({name: one.events for name, one in errors.items()}) }")


@pytest.mark.parametrize(
    ("ebn0_db", "kind"), [point for point in POINTS if ALL_CELLS or point[0] in SHORT], ids=lambda value: str(value)
)
def test_bit_error_rate_of_k7_agrees_with_libfec(programs: libfec.Programs, ebn0_db: float, kind: str) -> None:
    errors = _errors(programs, ["libfec", WHOLE_FRAME, "serial", "parallel", "stream"], ebn0_db, kind)

    peer = errors["libfec"].rate
    serial, usual = errors[WHOLE_FRAME].rate, errors["serial"].rate
    print(f"{kind} {ebn0_db} dB, {errors['libfec'].events} events: " + ", ".join(f"{k} {e.rate}" for k, e in errors.items()))
    assert abs(serial.mean - peer.mean) <= serial.half_width + peer.half_width
    # With the same noise the difference is far smaller than the intervals: ties, and half a step of the symbols' scale.
    assert serial.mean == pytest.approx(peer.mean, rel=0.03)
    for parallel in ("parallel", "stream"):
        assert errors[parallel].rate.mean <= 1.10 * peer.mean, parallel
    # A trace-back of 5 K costs a third of the error rate at 2 dB, and less the better the channel.
    assert 0.97 * serial.mean <= usual.mean <= 1.35 * serial.mean


@pytest.mark.parametrize("bits", [1, 2, 7, 13, 47, 48, 49, 100, 1001])
def test_odd_frame_lengths_decode_as_in_libfec(programs: libfec.Programs, bits: int) -> None:
    file = programs.folder / "odd"
    sent = frames.noisy(file, libfec.K7, bits=bits, count=200, ebn0_db=4.0, seed=bits)

    wrong = {
        decoder: int((programs.viterbi(decoder, file, 200, bits) != sent).sum())
        for decoder in ("libfec", "serial:2000", "serial", "parallel")
    }
    assert wrong["serial:2000"] == pytest.approx(wrong["libfec"], abs=4)
    assert wrong["serial"] <= 1.2 * wrong["libfec"] + 10
    assert wrong["parallel"] <= 1.2 * wrong["libfec"] + 10


@pytest.mark.parametrize("bits", [97, 100_000])
@pytest.mark.parametrize("data", ["random", "zeros", "ones"])
def test_full_scale_without_noise_is_decoded_without_error(programs: libfec.Programs, bits: int, data: str) -> None:
    """Here wrapping eight-bit metrics overflow, as they do in two published decoders."""
    rng = np.random.default_rng(7)
    sent = {
        "random": rng.integers(0, 2, (3, bits), np.uint8),
        "zeros": np.zeros((3, bits), np.uint8),
        "ones": np.ones((3, bits), np.uint8),
    }[data]
    # Both sides take certain symbols for hard decisions when all are; one uncertain symbol makes them soft ones.
    for uncertain in (False, True):
        symbols = np.where(libfec.K7.encode(sent) == 1, 255, 0).astype(np.uint8)
        if uncertain:
            symbols[0, 0] = 100
        file = programs.folder / "clean"
        frames.write(file, libfec.K7, symbols, sent)
        for decoder in ("libfec", "serial", "parallel", "stream"):
            assert (programs.viterbi(decoder, file, 3, bits) == sent).all(), decoder


def test_ccsds_inverts_the_second_output(programs: libfec.Programs) -> None:
    """libfec writes the inversion as a negative polynomial; farlink has the plain code, so undo the inversion first."""
    rng = np.random.default_rng(3)
    sent = rng.integers(0, 2, (20, 800), np.uint8)
    coded = libfec.K7.encode(sent)
    coded[:, 1::2] ^= 1
    symbols = frames.soft(frames.received(coded, rng.standard_normal(coded.shape), ebn0_db=6.0, rate=0.5))
    file = programs.folder / "ccsds"

    frames.write(file, frames.Code(7, ("171", "-133")), symbols, sent)
    assert (programs.viterbi("libfec", file, 20, 800) == sent).all()

    symbols[:, 1::2] = 255 - symbols[:, 1::2]
    frames.write(file, libfec.K7, symbols, sent)
    assert (programs.viterbi("serial", file, 20, 800) == sent).all()


def _spoiled(words: np.ndarray, wrong: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The words with so many wrong symbols in each."""
    spoiled = words.copy()
    for word, count in zip(spoiled, wrong, strict=True):
        at = rng.choice(255, count, replace=False)
        word[at] ^= rng.integers(1, 256, count, np.uint8)
    return spoiled


@pytest.mark.parametrize("code", ["conventional", "ccsds", "ccsds-dual"])
@pytest.mark.parametrize("decoder", ["serial", "batch"])
def test_reed_solomon_is_libfecs_bit_for_bit(programs: libfec.Programs, code: str, decoder: str) -> None:
    rng = np.random.default_rng(11)
    count = 3000 if ALL_CELLS else 600
    words = rng.integers(0, 256, (count, 255), np.uint8)
    encoded = programs.reed_solomon("libfec", code, words)
    assert (programs.reed_solomon(decoder, code, words).parity == encoded.parity).all()

    words[:, 223:] = encoded.parity
    wrong = np.arange(count) % 21
    received = _spoiled(words, wrong, rng)
    theirs = programs.reed_solomon("libfec", code, received)
    ours = programs.reed_solomon(decoder, code, received)

    within = wrong <= 16
    assert (ours.corrected[within] == words[within]).all()
    assert (ours.wrong[within] == wrong[within]).all()
    # Also beyond the bound: both decoders give up the same words, and leave them unchanged.
    assert (ours.wrong == theirs.wrong).all()
    assert (ours.corrected == theirs.corrected).all()


@pytest.mark.parametrize("symbol_error_rate", [0.045, 0.05, 0.06, 0.07])
def test_reed_solomon_word_errors_follow_the_closed_form(programs: libfec.Programs, symbol_error_rate: float) -> None:
    """A word is lost when more than t = 16 of its 255 symbols are wrong: the tail of a binomial distribution."""
    rng = np.random.default_rng(round(1e4 * symbol_error_rate))
    count = 40_000 if ALL_CELLS else 10_000
    words = np.zeros((count, 255), np.uint8)
    received = np.where(rng.random((count, 255)) < symbol_error_rate, rng.integers(1, 256, (count, 255), np.uint8), 0)
    received = received.astype(np.uint8)

    lost = int((programs.reed_solomon("batch", "conventional", received).corrected != words).any(axis=1).sum())

    p = symbol_error_rate
    expected = math.fsum(math.comb(255, wrong) * p**wrong * (1 - p) ** (255 - wrong) for wrong in range(17, 256))
    print(f"symbol errors {p}: words lost {lost} of {count}, closed form {expected * count:.1f}")
    # 3.3 standard deviations: one false alarm in a thousand runs of this test with another seed.
    assert abs(lost - expected * count) <= 3.3 * math.sqrt(count * expected * (1 - expected))
