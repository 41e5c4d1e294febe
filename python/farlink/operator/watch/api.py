"""The API over HTTP: what bundles do and did, metrics, and, if that is allowed, orders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError, ResponseValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException as AnyHTTPException

from farlink import __version__
from farlink.errors import FarlinkError
from farlink.operator.live.control import UnreachableError
from farlink.operator.watch import metrics, orders, reading
from farlink.operator.watch.answers import Problem
from farlink.operator.watch.gate import Policy
from farlink.operator.watch.source import Source
from farlink.untrusted import printable

_ABOUT = "State, history and reports of bundles; orders, if they are allowed. Every problem says what is wrong and what to do."

_PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "No HTTP that is understood"},
    401: {"model": Problem, "description": "A token is needed, or is not known"},
    403: {"model": Problem, "description": "The token has no right to this, or host or origin are foreign"},
    404: {"model": Problem, "description": "There is no such thing"},
    409: {"model": Problem, "description": "It cannot be done now, and why"},
    413: {"model": Problem, "description": "The body is too long"},
    422: {"model": Problem, "description": "A value is refused, and which"},
    500: {"model": Problem, "description": "An error of this program"},
    503: {"model": Problem, "description": "The operator of the bundle does not answer"},
}


def application(sources: Sequence[Source], policy: Policy) -> FastAPI:
    """The API of some bundles.

    Parameters
    ----------
    sources
        The bundles.
    policy
        Who may ask for what. Hosts, origins and tokens are checked by the `Gate` around it.
    """
    app = FastAPI(title="farlink bundle", version=__version__, description=_ABOUT, openapi_url=None)
    app.state.served = reading.Served(sources, policy)
    app.include_router(reading.router, responses=_PROBLEMS)
    if policy.allow_changes:
        app.include_router(orders.router, responses=_PROBLEMS)
    registry = metrics.registry_of(sources)

    def open_to(request: Request) -> None:
        if policy.needs_token_for_metrics and not reading.asker_of(request).rights:
            raise reading.needs_token()

    @app.get("/metrics", dependencies=[Depends(open_to)], include_in_schema=False)
    def show_metrics() -> Response:
        return Response(metrics.text_of(registry), media_type=metrics.CONTENT_TYPE)

    @app.get("/openapi.json", dependencies=[Depends(open_to)], include_in_schema=False)
    def description() -> dict[str, Any]:
        return described(app)

    _answer_problems(app)
    return app


def described(app: FastAPI) -> dict[str, Any]:
    """The description of an API (OpenAPI), with the tokens that it takes."""
    found = app.openapi()
    schemes = found.setdefault("components", {}).setdefault("securitySchemes", {})
    schemes["token"] = {"type": "http", "scheme": "bearer", "bearerFormat": "flk1_ID_SECRET"}
    policy = app.state.served.policy
    found["security"] = [{"token": []}] if policy.needs_token_to_read else [{}, {"token": []}]
    return found


def _answer_problems(app: FastAPI) -> None:
    """Answer every error with what is wrong and what to do."""

    @app.exception_handler(UnreachableError)
    def unreachable(_: Request, error: UnreachableError) -> Response:
        return _problem(503, error.message, error.remedy)

    @app.exception_handler(ResponseValidationError)
    def not_understood(_: Request, __: ResponseValidationError) -> Response:
        return _problem(503, "the operator says what this farlink does not know", "use the farlink of the operator")

    @app.exception_handler(FarlinkError)
    def refused(_: Request, error: FarlinkError) -> Response:
        return _problem(409, error.message, error.remedy)

    @app.exception_handler(Exception)
    def failed(_: Request, __: Exception) -> Response:
        return _problem(500, "internal error of the server", "its log says where; please report it")

    @app.exception_handler(RequestValidationError)
    def invalid(_: Request, error: RequestValidationError) -> Response:
        found = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()[:5]]
        return _problem(422, printable("; ".join(found), 500), "see /openapi.json")

    @app.exception_handler(AnyHTTPException)
    def http(_: Request, error: AnyHTTPException) -> Response:
        detail: Any = error.detail
        if not isinstance(detail, dict):
            remedy = "see /openapi.json" if error.status_code != 405 else "use the method that /openapi.json names"
            detail = {"error": str(detail).lower(), "remedy": remedy}
        return JSONResponse(detail, error.status_code, headers=error.headers)


def _problem(status: int, error: str, remedy: str) -> Response:
    return JSONResponse({"error": error, "remedy": remedy}, status)
