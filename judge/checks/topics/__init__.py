"""Checks of topic ids, names and the clusters they belong to (TID, CLU, DRF, ADM)."""
