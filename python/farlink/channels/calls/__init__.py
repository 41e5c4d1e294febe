"""Bundles of links that drop out: what their logs say of calls and drops."""
