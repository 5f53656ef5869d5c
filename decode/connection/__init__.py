"""Frames of TCP to exchanges of Kafka."""
