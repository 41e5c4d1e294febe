"""What the API tells: what bundles do and did. Nothing here changes anything."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Query, Request

from farlink.errors import FarlinkError, JournalError
from farlink.near_names import instead
from farlink.operator.journal.rows import STATES
from farlink.operator.journal.view import MOST_ROWS, Filter
from farlink.operator.watch.answers import (
    AlertsAnswer,
    BundleAnswer,
    BundleNames,
    ConnectionsAnswer,
    LineAnswer,
    LinesAnswer,
    TransitionsAnswer,
    connection_answer,
    transition_answer,
)
from farlink.operator.watch.fit import Fits
from farlink.operator.watch.gate import Asker, Policy
from farlink.operator.watch.source import Source
from farlink.untrusted import printable

_LARGEST = 2**53
_LAST_S = 253_402_300_799

Number = Annotated[int, Query(ge=0, le=_LARGEST)]
Limit = Annotated[int, Query(ge=1, le=MOST_ROWS, description="Rows at most.")]
Seconds = Annotated[float, Query(ge=0, le=_LAST_S, description="In s since 1970-01-01 UTC.")]


class Served:
    """The bundles that an API serves, and who may do what with them."""

    def __init__(self, sources: Iterable[Source], policy: Policy) -> None:
        self.sources = {source.bundle.name: source for source in sources}
        self.policy = policy
        self.fits = Fits()

    def may_read(self, asker: Asker, bundle: str) -> bool:
        """Whether someone may read of a bundle."""
        return not self.policy.needs_token_to_read or bundle in asker.rights

    def source(self, bundle: str, asker: Asker) -> Source:
        """A bundle that someone may read of.

        Raises
        ------
        HTTPException
            401 without a token, 403 with one for other bundles, 404 if there is none.
        """
        if self.policy.needs_token_to_read and not asker.rights:
            raise needs_token()
        if bundle not in self.sources:
            seen = [name for name in self.sources if self.may_read(asker, name)]
            raise refusal(
                404,
                f"there is no bundle {printable(bundle, 60)!r}",
                instead(bundle, seen) if seen else "the token is for no bundle",
            )
        if not self.may_read(asker, bundle):
            raise refusal(403, f"the token has no right to bundle {bundle}", "make one with `farlink bundle token add`")
        return self.sources[bundle]


def refusal(status: int, error: str, remedy: str) -> HTTPException:
    """A refusal as an answer."""
    headers = {"www-authenticate": 'Bearer realm="farlink"'} if status == 401 else None
    return HTTPException(status, {"error": error, "remedy": remedy}, headers)


def needs_token() -> HTTPException:
    """The refusal of who has no token."""
    return refusal(401, "this needs a token", "send one as `Authorization: Bearer ...`; `farlink bundle token add` makes it")


def served_of(request: Request) -> Served:
    """What the application serves."""
    found: Served = request.app.state.served
    return found


def asker_of(request: Request) -> Asker:
    """The caller, as the gate has found."""
    found: Asker = getattr(request.state, "asker", Asker())
    return found


def source_of(bundle: str, request: Request) -> Source:
    """The bundle of a path, if it may be read."""
    return served_of(request).source(bundle, asker_of(request))


Chosen = Annotated[Source, Depends(source_of)]

router = APIRouter(prefix="/v1")


@router.get("/bundles", response_model=BundleNames)
def bundles(request: Request) -> dict[str, Any]:
    """The bundles that are served and may be read."""
    served, asker = served_of(request), asker_of(request)
    if served.policy.needs_token_to_read and not asker.rights:
        raise needs_token()
    seen = [source for name, source in served.sources.items() if served.may_read(asker, name)]
    return {"bundles": [{"bundle": source.bundle.name, "is_operated": _is_operated(source)} for source in seen]}


@router.get("/bundles/{bundle}", response_model=BundleAnswer)
def bundle_status(source: Chosen) -> dict[str, Any]:
    """State of a bundle, as `farlink bundle status --json` has it."""
    return source.status()


@router.get("/bundles/{bundle}/lines", response_model=LinesAnswer)
def lines(source: Chosen) -> dict[str, Any]:
    """State of each line."""
    return {"lines": list(source.lines().values())}


@router.get("/bundles/{bundle}/lines/{line}", response_model=LineAnswer)
def line_status(source: Chosen, line: str) -> dict[str, Any]:
    """State of a line."""
    return known_line(source, line)


@router.get("/bundles/{bundle}/alerts", response_model=AlertsAnswer)
def alerts(source: Chosen) -> dict[str, Any]:
    """Alerts that are raised."""
    return {"alerts": source.status().get("alerts") or []}


@router.get("/bundles/{bundle}/transitions", response_model=TransitionsAnswer)
def transitions(
    source: Chosen,
    after: Annotated[Number, Query(description="Only numbers above this.")] = 0,
    before: Annotated[Number | None, Query(description="Only numbers below this.")] = None,
    limit: Limit = 100,
    newest_first: Annotated[bool, Query(description="Whether the order is the other way round.")] = False,
    line: Annotated[str | None, Query(description="Only of this line.")] = None,
    state: Annotated[str | None, Query(description=f"Only to this state: {', '.join(STATES)}.")] = None,
    connection: Annotated[Number | None, Query(description="Only of this connection.")] = None,
    since_s: Annotated[Seconds | None, Query()] = None,
    until_s: Annotated[Seconds | None, Query()] = None,
) -> dict[str, Any]:
    """Transitions of the journal, page by page; the operator need not run."""
    wanted = Filter(line, state, connection, since_s, until_s)
    found = source.journal.transitions(wanted, after=after, before=before, limit=limit, newest_first=newest_first)
    return {"transitions": [transition_answer(one) for one in found], "next": _next(found, limit)}


@router.get("/bundles/{bundle}/connections", response_model=ConnectionsAnswer)
def connections(
    source: Chosen, before: Annotated[Number | None, Query(description="Only numbers below this.")] = None, limit: Limit = 100
) -> dict[str, Any]:
    """Connections of the journal, the newest first; the operator need not run."""
    found = source.journal.connections(before=before, limit=limit)
    return {"connections": [connection_answer(one) for one in found], "next": _next(found, limit)}


@router.get("/bundles/{bundle}/connections/{number}/report")
def report(source: Chosen, number: str) -> dict[str, Any]:
    """The report of a connection, by its number or as `last`, as `farlink bundle report` has it."""
    if number != "last" and not (number.isascii() and number.isdecimal() and len(number) < 16):
        raise refusal(404, f"there is no connection {printable(number, 40)!r}", "give its number, or last")
    try:
        return source.report(None if number == "last" else int(number))
    except JournalError as error:
        raise refusal(404, error.message, error.remedy) from error


@router.get("/bundles/{bundle}/fit")
def fit(
    source: Chosen,
    request: Request,
    days: Annotated[float, Query(gt=0, le=36_600, description="Connections that began so long ago at most.")] = 30,
) -> dict[str, Any]:
    """Statistics of up times and drops, as `farlink bundle fit --json` has them; 409 says what is missing for a fit."""
    return served_of(request).fits.of(source, days)


def known_line(source: Source, line: str) -> dict[str, Any]:
    """The state of a line.

    Raises
    ------
    HTTPException
        404 if there is no such line.
    """
    known = source.lines()
    if line not in known:
        raise refusal(404, f"bundle {source.bundle.name} has no line {printable(line, 60)!r}", instead(line, known))
    return known[line]


def _is_operated(source: Source) -> bool:
    try:
        source.status()
    except FarlinkError:
        return False
    return True


def _next(found: Sequence[Any], limit: int) -> int | None:
    return found[-1].number if len(found) >= limit else None
