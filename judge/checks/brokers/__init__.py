"""Checks of controllers, brokers and replicas (CTL, LOG, VER between brokers)."""
