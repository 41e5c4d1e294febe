"""Public functions with each argument in turn replaced by something hostile.

Those of the closed-form models, all of which have an example; of `farlink.channels` and `farlink.tune` those that have one.
"""

from __future__ import annotations

import copy
import dataclasses
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

from farlink import channels, models, tune
from farlink.errors import FarlinkError

# Functions called only by farlink: checks of the models, sets of positions, readers of a line or column of a log, words.
NOT_FOR_USERS = (
    "farlink.models.ranges",
    "farlink.channels.importers",
    "farlink.channels.calls.describe",
    "farlink.channels.calls.journal",
    "farlink.channels.calls.words",
    "farlink.channels.describe",
    "farlink.channels.parameter",
    "farlink.channels.synthesis.parameters",
    "farlink.channels.synthesis.streams",
    "farlink.channels.synthesis.text",
    "farlink.tune.ascending",
    "farlink.tune.curves",
    "farlink.tune.equivalent_ber",
    "farlink.tune.play",
)
LONGEST_S = 5.0  # of CPU time, so that other work on the machine does not count

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
# Values that are no valid number, name or record.
NEVER_TAKEN = ("bytes", "complex", "texts", "objects", "dict", "object", "ragged")


PACKAGES = (models, channels, tune)
# Every function of these has an example.
COMPLETE = "farlink.models."


def modules():
    names = [one.name for package in PACKAGES for one in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
    return [importlib.import_module(name) for name in names if not name.startswith(NOT_FOR_USERS) and "._" not in name]


@functools.cache
def public_functions():
    return {
        f"{module.__name__}.{name}": value
        for module in modules()
        for name, value in vars(module).items()
        if not name.startswith("_") and inspect.isfunction(value) and value.__module__ == module.__name__
        if module.__name__.startswith(COMPLETE) or ">>>" in (value.__doc__ or "")
    }


@functools.cache
def sane_calls():
    """The first call of each public function in the docstring examples."""
    calls = {}
    originals = {id(function): (name, function) for name, function in public_functions().items()}

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

    with pytest.MonkeyPatch.context() as patch:
        for module in [one for name, one in sys.modules.items() if name.startswith(tuple(one.__name__ for one in PACKAGES))]:
            for name, value in list(vars(module).items()):
                if id(value) in originals:
                    patch.setattr(module, name, recorded(*originals[id(value)]))
        runner = doctest.DocTestRunner(verbose=False)
        for module in modules():
            if module.__name__.startswith(COMPLETE):
                for example in doctest.DocTestFinder(recurse=True).find(module, globs=dict(vars(module))):
                    runner.run(example, out=lambda _: None)
            for value in list(vars(module).values()):
                original = inspect.unwrap(value) if inspect.isfunction(value) else None
                if original is not None and original.__module__ == module.__name__ and ">>>" in (original.__doc__ or ""):
                    parser = doctest.DocTestParser()
                    example = parser.get_doctest(original.__doc__, dict(vars(module)), original.__name__, None, 0)
                    runner.run(example, out=lambda _: None)
    return calls


class TooSlow(BaseException):
    pass


def too_slow(*_):
    raise TooSlow


def outcome(function, bound, argument, value):
    # A new copy for each call: a function may advance a generator of random numbers.
    call = inspect.BoundArguments(bound.signature, {**copy.deepcopy(bound.arguments), argument: value})
    previous = signal.signal(signal.SIGPROF, too_slow)
    signal.setitimer(signal.ITIMER_PROF, LONGEST_S)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return function(*call.args, **call.kwargs)
    except FarlinkError as error:
        return error
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous)


def takes_any_collection(signature, argument):
    return str(signature.parameters[argument].annotation).startswith(("Mapping", "Iterable"))


def test_every_public_function_has_an_example_call():
    missing = sorted(set(public_functions()) - set(sane_calls()))

    assert missing == [], "give these an example in their docstrings"
    assert len(sane_calls()) > 100


@pytest.mark.parametrize("name", sorted(public_functions()))
def test_hostile_arguments_give_a_result_or_a_farlink_error(name):
    function, bound = public_functions()[name], sane_calls()[name]
    # Variadic arguments would be replaced as a whole, which no caller can do.
    single = [one for one in bound.signature.parameters.values() if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)]
    for argument in [one.name for one in single]:
        for kind, value in HOSTILE.items():
            where = f"{name}({argument} = {kind})"
            try:
                result = outcome(function, bound, argument, value)
            except TooSlow:
                pytest.fail(f"{where} takes more than {LONGEST_S} s of CPU time")
            except Exception as error:
                pytest.fail(f"{where}: {type(error).__name__}: {error}")
            if isinstance(result, FarlinkError):
                assert result.message, where
                assert result.remedy, where
            elif not (kind == "dict" and takes_any_collection(bound.signature, argument)):
                assert kind not in NEVER_TAKEN, f"{where} gives {result!r}"


EXTREME = (1e308, 1e-308, 1e200, 1e-200, 1e100, 1e30, 1e-30)
# The time is unknown where the correlation does not fall to the level.
MAY_BE_UNKNOWN = {"farlink.channels.fades.correlation_time_s"}


def has_nan(result):
    if isinstance(result, float | np.floating | np.ndarray):
        return bool(np.any(np.isnan(np.asarray(result, dtype=float)))) if np.asarray(result).dtype.kind == "f" else False
    if dataclasses.is_dataclass(result):
        return any(has_nan(getattr(result, field.name)) for field in dataclasses.fields(result))
    return isinstance(result, tuple | list) and any(map(has_nan, result))


@pytest.mark.parametrize("name", sorted({*public_functions()} - MAY_BE_UNKNOWN))
def test_extreme_numbers_give_numbers_or_are_refused(name):
    function, bound = public_functions()[name], sane_calls()[name]
    if has_nan(function(*copy.deepcopy(bound).args, **copy.deepcopy(bound).kwargs)):
        return
    for argument, sane in bound.arguments.items():
        if isinstance(sane, bool) or not isinstance(sane, int | float):
            continue
        for value in EXTREME:
            result = outcome(function, bound, argument, value)

            assert isinstance(result, FarlinkError) or not has_nan(result), f"{name}({argument} = {value}) gives {result!r}"


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


def test_numbers_of_any_type_are_accepted():
    expected = models.arq.window_bytes(0.5, rate_bps=1e6)
    for rtt_s in (Decimal("0.5"), np.float32(0.5), np.array([0.5]), [0.5], (Decimal("0.5"),)):
        assert np.ravel(models.arq.window_bytes(rtt_s, rate_bps=np.int64(1_000_000)))[0] == expected
