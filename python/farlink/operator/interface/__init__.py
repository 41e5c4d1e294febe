"""An interface that is already there: followed by netlink, probed both ways, and what its probes may cost."""
