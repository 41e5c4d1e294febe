"""Hostile files, and a program that runs the commands over them within bounds of memory and time."""
