"""What the dashboard shows, and what it does: bundles, journals, files and programs. Nothing here knows of NiceGUI."""
