"""Bundles of links that drop out: calls and drops from their logs."""
