"""Lines of a bundle that are dialled for real: what is said to modems, and a bank of modems to try it with."""
