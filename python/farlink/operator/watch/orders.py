"""Orders over the API, which need a token with the right `change`: hold, release, redial, and drops that are injected."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, ConfigDict, Field

from farlink.operator.watch.answers import OrderAnswer
from farlink.operator.watch.reading import asker_of, known_line, refusal, served_of
from farlink.operator.watch.source import Source

_STRICT = ConfigDict(extra="forbid", strict=True)
Names = Annotated[list[str], Field(min_length=1, max_length=64, description="Names of lines.")]


class Lines(BaseModel):
    """Lines to which something is done. None is meant unless it is named."""

    model_config = _STRICT
    lines: Names


class Hold(Lines):
    """Lines that are held, and why."""

    why: str = Field("", max_length=150, description="For the journal.")


class Inject(Lines):
    """Lines that are dropped by a Poisson process."""

    mean_s: float = Field(ge=0.01, le=31_536_000, description="Mean time between drops of each line, in s.")
    seed: int | None = Field(None, ge=0, le=2**53)


def may_change(bundle: str, request: Request) -> Source:
    """The bundle of a path, if it may be changed."""
    served, asker = served_of(request), asker_of(request)
    if not asker.rights:
        raise refusal(401, "this needs a token", "send one as `Authorization: Bearer ...`; `farlink bundle token add` makes it")
    source = served.source(bundle, asker)
    if asker.rights.get(bundle) != "change":
        raise refusal(
            403, "the token has only the right to read", "make one with `farlink bundle token add NAME --right change`"
        )
    return source


Changed = Annotated[Source, Depends(may_change)]

router = APIRouter(prefix="/v1")


@router.post("/bundles/{bundle}/hold", response_model=OrderAnswer)
def hold(source: Changed, request: Request, order: Hold) -> dict[str, Any]:
    """Hang lines up, and dial them no more until they are released."""
    cause = f"{order.why} (by {asker_of(request).name})".strip()
    return _done(source, order.lines, {"do": "hold", "cause": cause})


@router.post("/bundles/{bundle}/release", response_model=OrderAnswer)
def release(source: Changed, order: Lines) -> dict[str, Any]:
    """Use lines again that were held."""
    return _done(source, order.lines, {"do": "release"})


@router.post("/bundles/{bundle}/redial", response_model=OrderAnswer)
def redial(source: Changed, order: Lines) -> dict[str, Any]:
    """Dial lines now, whatever pause they are in. A line that is up has its call ended first."""
    return _done(source, order.lines, {"do": "redial"})


@router.post("/bundles/{bundle}/drop", response_model=OrderAnswer)
def drop(source: Changed, order: Lines) -> dict[str, Any]:
    """Drop calls once, now, as a test; the journal marks these drops."""
    return _done(source, order.lines, {"do": "inject", "now": True})


@router.post("/bundles/{bundle}/inject", response_model=OrderAnswer)
def inject(source: Changed, order: Inject) -> dict[str, Any]:
    """Drop calls by a Poisson process, as a test, until that is ended; the journal marks these drops."""
    return _done(source, order.lines, {"do": "inject", "rate": f"1/{order.mean_s:.4f}s", "seed": order.seed})


@router.delete("/bundles/{bundle}/inject", response_model=OrderAnswer)
def inject_no_more(source: Changed) -> dict[str, Any]:
    """Inject no more drops."""
    return _done(source, [], {"do": "inject", "off": True})


def _done(source: Source, lines: list[str], request: dict[str, Any]) -> dict[str, Any]:
    for line in lines:
        known_line(source, line)
    try:
        return source.ask({**request, "lines": lines})
    finally:
        source.changed()
