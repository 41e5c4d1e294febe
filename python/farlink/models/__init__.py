"""Closed-form models: NumPy in, NumPy out, microseconds. One file a family.

- `arq`: goodput of the three classes of ARQ on a channel with independent errors
"""
