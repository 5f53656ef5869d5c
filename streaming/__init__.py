"""Frames to exchanges to claims to findings, in one Spark query."""
