"""Checks of bytes that were not understood, and of what could not be seen (WIR, VIS)."""
