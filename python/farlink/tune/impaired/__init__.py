"""Goodput of a modem's settings where the link is impaired by more than white noise: bursts, outages, fading.

Which segments a code loses is found by playing wrong bits of the channel through its decoder; the packet engine then runs TCP
over those losses.
"""
