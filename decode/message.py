"""Bytes to messages. (Being written: `Messages` and `known` are final, `decode` follows.)

Knows how a batch of messages is handed in. Does not know connections.
Rule: what others import from here stays importable.
"""

from decode.wire import Messages, known

__all__ = ["Messages", "known"]
