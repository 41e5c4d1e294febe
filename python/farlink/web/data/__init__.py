"""Data and actions of the dashboard: bundles, journals, files and programs. Nothing here knows of NiceGUI."""
