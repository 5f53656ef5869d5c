"""Bytes to messages to exchanges."""
