"""farlink compared with other simulators: the same scenario in ns-2 and ns-3."""
