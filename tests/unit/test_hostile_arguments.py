"""Every public function of the closed-form models with each argument in turn replaced by something hostile."""

from __future__ import annotations

import doctest
import functools
import importlib
import inspect
import pkgutil
import signal
import sys
import warnings
from decimal import Decimal

import numpy as np
import pytest

from farlink import models
from farlink.errors import FarlinkError

# The checks themselves, which only the models call.
NOT_FOR_USERS = {"farlink.models.ranges"}
LONGEST_S = 5.0

HOSTILE = {
    "none": None,
    "nan": float("nan"),
    "infinite": float("inf"),
    "minus infinite": -float("inf"),
    "negative": -1,
    "zero": 0,
    "huge": 1e308,
    "2^63": 2**63,
    "10^400": 10**400,
    "text": "x",
    "number as text": "3",
    "bytes": b"x",
    "bool": True,
    "complex": 1j,
    "decimal": Decimal("0.1"),
    "float32": np.float32(0.5),
    "int64": np.int64(3),
    "empty": np.array([]),
    "wrong shape": np.ones((2, 3)),
    "texts": np.array(["a"]),
    "objects": np.array([None]),
    "no list": [],
    "dict": {},
    "object": object(),
    "ragged": [[1, 2], [3]],
}
# What no number, name or record is.
NEVER_TAKEN = ("bytes", "complex", "texts", "objects", "dict", "object", "ragged")


def modules():
    found = [importlib.import_module(one.name) for one in pkgutil.walk_packages(models.__path__, "farlink.models.")]
    return [one for one in found if one.__name__ not in NOT_FOR_USERS and "._" not in one.__name__]


def public_functions():
    return {
        f"{module.__name__}.{name}": value
        for module in modules()
        for name, value in vars(module).items()
        if not name.startswith("_") and inspect.isfunction(value) and value.__module__ == module.__name__
    }


@functools.cache
def sane_calls():
    """The first call of each public function that the examples of all docstrings come to."""
    calls = {}

    def recorded(name, function):
        signature = inspect.signature(function)

        @functools.wraps(function)
        def record(*args, **kwargs):
            if name not in calls:
                bound = signature.bind(*args, **kwargs)
                bound.apply_defaults()
                calls[name] = bound
            return function(*args, **kwargs)

        return record

    originals = {id(function): (name, function) for name, function in public_functions().items()}
    with pytest.MonkeyPatch.context() as patch:
        for module in [one for name, one in sys.modules.items() if name.startswith("farlink.models")]:
            for name, value in list(vars(module).items()):
                if id(value) in originals:
                    patch.setattr(module, name, recorded(*originals[id(value)]))
        runner = doctest.DocTestRunner(verbose=False)
        for module in modules():
            for example in doctest.DocTestFinder(recurse=True).find(module, globs=dict(vars(module))):
                runner.run(example, out=lambda _: None)
            for value in list(vars(module).values()):
                original = inspect.unwrap(value) if inspect.isfunction(value) else None
                if original is not None and original.__module__ == module.__name__ and original.__doc__:
                    parser = doctest.DocTestParser()
                    example = parser.get_doctest(original.__doc__, dict(vars(module)), original.__name__, None, 0)
                    runner.run(example, out=lambda _: None)
    return calls


class TooSlow(BaseException):
    pass


def too_slow(*_):
    raise TooSlow


def outcome(function, bound, argument, value):
    call = inspect.BoundArguments(bound.signature, {**bound.arguments, argument: value})
    previous = signal.signal(signal.SIGALRM, too_slow)
    signal.setitimer(signal.ITIMER_REAL, LONGEST_S)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return function(*call.args, **call.kwargs)
    except FarlinkError as error:
        return error
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def test_every_public_function_has_a_sane_call():
    missing = sorted(set(public_functions()) - set(sane_calls()))

    assert missing == [], "give these an example in their docstrings"
    assert len(sane_calls()) > 100


@pytest.mark.parametrize("name", sorted(public_functions()))
def test_a_result_or_an_error_of_farlink(name):
    function, bound = public_functions()[name], sane_calls()[name]
    for argument in bound.signature.parameters:
        for kind, value in HOSTILE.items():
            where = f"{name}({argument} = {kind})"
            try:
                result = outcome(function, bound, argument, value)
            except TooSlow:
                pytest.fail(f"{where} takes more than {LONGEST_S} s")
            except Exception as error:
                pytest.fail(f"{where}: {type(error).__name__}: {error}")
            if isinstance(result, FarlinkError):
                assert result.message, where
                assert result.remedy, where
            else:
                assert kind not in NEVER_TAKEN, f"{where} gives {result!r}"


def test_an_error_names_argument_value_rule_and_remedy():
    with pytest.raises(FarlinkError) as caught:
        models.arq.packet_loss("1e-6", packet_bytes=1000)

    assert caught.value.message == "ber must be a number or an array of numbers, not '1e-6'"
    assert caught.value.remedy == "change ber: it must be a number or an array of numbers"


def test_unknown_and_missing_names_are_type_errors():
    with pytest.raises(TypeError, match="unexpected keyword"):
        models.arq.window_bytes(1.0, rate_bps=1e6, rate=1)
    with pytest.raises(TypeError, match="missing"):
        models.arq.window_bytes(1.0)


def test_numbers_of_any_kind_are_taken():
    expected = models.arq.window_bytes(0.5, rate_bps=1e6)
    for rtt_s in (Decimal("0.5"), np.float32(0.5), np.array([0.5]), [0.5], (Decimal("0.5"),)):
        assert np.ravel(models.arq.window_bytes(rtt_s, rate_bps=np.int64(1_000_000)))[0] == expected
