"""Topic ids as people meet them.

Knows: Kafka prints an id as 22 characters of URL-safe base64; tshark and log directories show dashed hex.
Refuses to know which topic an id belongs to. Rule: one form is made from the other, never guessed.
"""

import base64
from uuid import UUID


def hex_id(topic_id: str | None) -> str:
    """A topic id as the dashed hex that tshark and log directories show, from Kafka's base64."""
    if not topic_id:
        return ""
    return str(UUID(bytes=base64.urlsafe_b64decode(topic_id + "==")))
