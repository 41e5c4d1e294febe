"""Alerts: what is wrong with a bundle, raised once and cleared once, and delivered to people."""

from farlink.operator.alerts.causes import CAUSES as CAUSES
from farlink.operator.alerts.causes import SEVERITIES as SEVERITIES
from farlink.operator.alerts.causes import View as View
from farlink.operator.alerts.raised import Alerts as Alerts
from farlink.operator.alerts.raised import Change as Change
from farlink.operator.alerts.raised import Raised as Raised
