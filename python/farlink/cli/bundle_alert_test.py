"""`farlink bundle alert-test`: a test message by each way out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from farlink.cli.messages import data, user_errors

if TYPE_CHECKING:
    from farlink.operator.config import Bundle, Secrets

EXAMPLES = """
[bold]Examples[/bold]

farlink bundle alert-test bundle.toml

farlink bundle alert-test bundle.toml --standby
"""


def alert_test(
    config: Annotated[Path, typer.Argument(metavar="FILE", help="The bundle, a TOML file.")],
    standby: Annotated[
        bool, typer.Option("--standby", help="Send it by the stand-by line's short message, too, which costs money.")
    ] = False,
) -> None:
    """Send a test message to each URL of FILE's alerts, and say what came of it; exit with 1 if one was not sent.

    URLs are named by their names in the secrets file. The operator need not run.
    """
    with user_errors():
        import asyncio

        from farlink.operator.config import load
        from farlink.operator.core_dumps import forbid_core_dumps
        from farlink.text_table import table

        forbid_core_dumps()
        bundle, secrets = load(config, needs_ports=False)
        _refuse(bundle, secrets, standby=standby)
        outcomes = asyncio.run(_sent(bundle, secrets, config.parent, standby=standby))
        data(table(("to", "outcome"), [(name, f"not sent: {why}" if why else "sent") for name, why in outcomes]) + "\n")
    if any(why for _, why in outcomes):
        raise typer.Exit(1)


def _refuse(bundle: Bundle, secrets: Secrets, *, standby: bool) -> None:
    from farlink.errors import OperatorError
    from farlink.extras import require

    rules = bundle.alerts.standby
    if standby and (rules is None or rules.way != "sms"):
        raise OperatorError("--standby: no stand-by line sends short messages", 'give [alerts.standby] with way = "sms"')
    if not secrets.alert_urls and not standby:
        remedy = 'name the secrets file with urls_from below [alerts], and write [alerts] there with office = "mailto://..."'
        raise OperatorError(f"bundle {bundle.name} has no URL for alerts", remedy)
    if secrets.alert_urls:
        require("apprise", "alerts")
    if standby:
        require("serialx", "a stand-by line")


async def _sent(bundle: Bundle, secrets: Secrets, folder: Path, *, standby: bool) -> list[tuple[str, str]]:
    import asyncio
    import time

    from farlink.operator.alerts.message import Message, text_of
    from farlink.operator.alerts.sender import Sender
    from farlink.operator.config.alerts import STANDBY
    from farlink.operator.live.alerting import standby_of

    words = "this is a test: nothing is wrong"
    message = Message(bundle.name, "test", "test", "test", words, "info", time.time())
    sender = Sender(secrets.alert_urls)
    try:
        whys = await asyncio.gather(*(sender.send(name, *text_of([message]), "info") for name in sender.names))
    finally:
        await sender.close()
    found = list(zip(sender.names, whys, strict=True))
    line = standby_of(bundle, secrets, _NoPins(), folder) if standby else None
    return found if line is None else [*found, (STANDBY, await line.send([message]))]


class _NoPins:
    """Without the journal, which the operator has, nobody can note that a PIN was tried."""

    def may_try(self, line: str) -> bool:  # noqa: ARG002
        """No PIN."""
        return False

    def note_tried(self, line: str) -> bool:  # noqa: ARG002
        """It cannot be noted."""
        return False

    def note_outcome(self, line: str, outcome: str) -> None:
        """Nothing."""
