"""Pathapati, Nguyen, Rohrer and Sterbenz: performance analysis of the AeroTP transport protocol."""
