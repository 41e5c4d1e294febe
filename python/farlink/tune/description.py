"""Descriptions that only Python reads: TOML, checked by Pydantic, refused in farlink's words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from farlink.errors import TuneError
from farlink.extras import require
from farlink.near_names import instead
from farlink.untrusted import read_text, toml_tables

if not TYPE_CHECKING:
    require("pydantic", "a description of a modem or of a study")

# Common to all descriptions, so that they all report if Pydantic is missing.
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic import Field as Field
from pydantic import PrivateAttr as PrivateAttr
from pydantic import model_validator as model_validator

# Numbers of a description: no text that looks like one, nothing infinite.
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Positive = Annotated[float, Field(strict=True, allow_inf_nan=False, gt=0)]
NotNegative = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0)]
Share = Annotated[float, Field(strict=True, allow_inf_nan=False, gt=0, le=1)]
Between = Annotated[float, Field(strict=True, allow_inf_nan=False, gt=0, lt=1)]
Count = Annotated[int, Field(strict=True, ge=1, le=1_000_000)]
# As long as an IP packet may be.
Bytes = Annotated[int, Field(strict=True, ge=1, le=65_535)]
Headers = Annotated[int, Field(strict=True, ge=0, le=65_535)]
Some = Annotated[int, Field(strict=True, ge=0, le=65_535)]
Seed = Annotated[int, Field(strict=True, ge=0, le=2**32 - 1)]
Text = Annotated[str, Field(strict=True, min_length=1)]
Switch = Annotated[bool, Field(strict=True)]


class Description(BaseModel):
    """A table of a description: immutable, without unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


Described = TypeVar("Described", bound=BaseModel)


def read_toml(path: Path, *, what: str) -> dict[str, Any]:
    """The tables of a TOML file.

    Parameters
    ----------
    path
        The file.
    what
        What it describes, for the message: ``"modem"``.

    Raises
    ------
    TuneError
        If it cannot be read or is not TOML.
    """
    try:
        text = read_text(path, TuneError)
    except OSError as error:
        raise TuneError(f"cannot read {what} {path}: {error.strerror}", "give the path of a TOML file") from error
    except UnicodeDecodeError as error:
        raise TuneError(f"{path} is not a text file in UTF-8", "a description is a TOML file; save it as UTF-8") from error
    try:
        return toml_tables(text)
    except ValueError as error:
        raise TuneError(
            f"{path} is not valid TOML: {error}", "correct that line; strings need quotes, keys need '='"
        ) from error


def validated(kind: type[Described], data: Any, *, where: str) -> Described:
    """A description from its data.

    Parameters
    ----------
    kind
        What is described.
    data
        Tables and values, as `tomllib` returns them.
    where
        File or place, for the message.

    Raises
    ------
    TuneError
        If a key is missing, unknown or has a value that is not allowed: its path, the value, what is allowed.
    """
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        problems = error.errors(include_url=False)
        message, remedy = _words(problems[0], kind, data)
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise TuneError(f"{where}: {message}{more}", remedy) from error


def _words(problem: Any, kind: type[BaseModel], data: Any) -> tuple[str, str]:
    """Message and remedy for one of Pydantic's errors."""
    path = _path(problem["loc"], data, is_missing=problem["type"] == "missing")
    sort, given, context = problem["type"], problem["input"], problem.get("ctx", {})
    if sort == "extra_forbidden":
        known = _keys(kind, problem["loc"][:-1])
        last = str(problem["loc"][-1])
        return f"{path}: there is no such key", instead(last, known) if known else "leave it out"
    if sort == "missing":
        return f"{path}: it is missing", "give it; see docs/guides/tuning.md"
    if sort in ("union_tag_invalid", "union_tag_not_found"):
        tag = str(context.get("tag", "nothing"))
        known = [one.strip().strip("'") for one in str(context.get("expected_tags", "")).split(",") if one.strip()]
        remedy = instead(tag, known) if known else 'give its kind: kind = "convolutional"'
        return f"{path}.kind: {tag!r} is none", remedy
    if sort == "literal_error":
        known = [one.strip().strip("'") for one in str(context["expected"]).replace(" or ", ",").split(",")]
        return f"{path}: {given!r} is none of {', '.join(known)}", instead(str(given), known)
    if sort == "value_error":
        cause = context.get("error")
        message, _, remedy = str(cause).partition("; ")
        return f"{path}: {message}" if path else message, remedy or "change it"
    return f"{path}: {given!r}: {problem['msg'][:1].lower()}{problem['msg'][1:]}", "give a value that is allowed"


def _path(place: Sequence[str | int], data: Any, *, is_missing: bool) -> str:
    """The dotted path of a key; numbers in brackets, and without the kind of a table, which Pydantic puts in."""
    text, found = "", data
    for number, part in enumerate(place):
        is_there = part in found if isinstance(found, dict) else isinstance(found, list)
        if not is_there and not (is_missing and number + 1 == len(place)):
            continue
        text += f"[{part}]" if isinstance(part, int) else f"{'.' if text else ''}{part}"
        if isinstance(found, dict):
            found = found.get(part)
        elif isinstance(found, list) and isinstance(part, int):
            found = found[part]
    return text


def _keys(kind: type[BaseModel], place: Sequence[str | int]) -> list[str]:
    """Names of the keys of the table at a place; none if that is not known."""
    found: Any = kind
    for part in place:
        if isinstance(found, type) and issubclass(found, BaseModel) and part in found.model_fields:
            found = found.model_fields[str(part)].annotation
            continue
        # The path into a table of tables, and to the kind of one of them, which Pydantic names by its tag.
        arguments = getattr(found, "__args__", ())
        tagged = [one for one in _models(found) if one.model_fields.get("kind") and part in _tags(one)]
        if tagged:
            found = tagged[0]
        elif arguments:
            found = arguments[0] if isinstance(part, int) else arguments[-1]
        else:
            return []
    models = _models(found)
    return list(models[0].model_fields) if len(models) == 1 else []


def _models(found: Any) -> list[type[BaseModel]]:
    """Every description within a type."""
    if isinstance(found, type) and issubclass(found, BaseModel):
        return [found]
    return [model for one in getattr(found, "__args__", ()) for model in _models(one)]


def _tags(kind: type[BaseModel]) -> tuple[Any, ...]:
    return tuple(getattr(kind.model_fields["kind"].annotation, "__args__", ()))
