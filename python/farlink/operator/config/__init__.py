"""``bundle.toml``: what an operator of a bundle is told, and a checker that names every mistake with its place."""

from __future__ import annotations

from farlink.operator.config.bundle import Budget, Bundle, BundleBudget, Limits, Line, Ppp
from farlink.operator.config.check import Checked, Mistake, check, load
from farlink.operator.config.secrets_file import Secrets

__all__ = ["Budget", "Bundle", "BundleBudget", "Checked", "Limits", "Line", "Mistake", "Ppp", "Secrets", "check", "load"]
