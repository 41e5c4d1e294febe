"""``python -m farlink`` is `farlink`."""

from farlink.cli import main

main()
