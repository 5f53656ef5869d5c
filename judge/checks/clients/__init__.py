"""Checks of what clients ask and how they are answered (FET, GRP, VER)."""
