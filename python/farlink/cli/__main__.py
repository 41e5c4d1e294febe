"""`python -m farlink.cli`."""

from farlink.cli import app

app(prog_name="farlink")
