"""Mutated bytes against the decoder and who reads files: they may refuse, not crash, hang, read outside, half-succeed.

Knows: how to bend valid messages, records fields, capture files and frames files, and what must hold of what comes out.
Rule: every run says its seed, its inputs and its time; the same seed bends the same bytes.
"""
