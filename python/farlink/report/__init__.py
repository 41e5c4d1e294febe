"""Reports: a result in, one self-contained HTML file out."""

from farlink.report.page import render_report, write_report

__all__ = ["render_report", "write_report"]
