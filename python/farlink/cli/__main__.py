"""`python -m farlink.cli`."""

from farlink.cli import main

main()
