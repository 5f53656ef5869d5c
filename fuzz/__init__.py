"""Mutated bytes against the decoder: it may refuse, it may not crash, hang, read outside or half-succeed.

Knows: how to bend valid messages and records fields, and what must hold whatever comes out.
Rule: every run says its seed, its inputs and its time; the same seed bends the same bytes.
"""
