"""Calls that drop for causes: handovers, low signal, cells at a speed, and a constant rate; drawn, and fitted to logs.

- `causes`: the description
- `low_signal`: the rule that a call drops after so long below a ratio, as a chain
- `survival`: how long calls stay up, by a description
- `draw`: logs and outages of lines, by a description
- `fit`: what measured calls say of a description
"""
