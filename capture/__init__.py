"""Packets to the frames table."""
