"""Records of TLS 1.3 under any key: OpenSSL's Python interface updates none."""

from dataclasses import replace

from wirecheck.capture.tls.record_keys import NONCE_BYTES


def record(key, number: int, content: bytes) -> bytes:
    """One that holds application data (RFC 8446 5.2)."""
    header = b"\x17\x03\x03" + (len(content) + 1 + 16).to_bytes(2, "big")
    nonce = (key._iv ^ number).to_bytes(NONCE_BYTES, "big")
    return header + key._aead.encrypt(nonce, content + b"\x17", header)


def sealed(segments, keys):
    """Each payload as one record by its sender's key, from number 0; `keys` by endpoint."""
    sent = {end: [0, 0] for end in keys}  # records, and bytes more than plain ones
    made = []
    for segment in segments:
        mine, other = sent[segment.src], sent[segment.dst]
        payload = record(keys[segment.src], mine[0], segment.payload)
        made.append(replace(segment, seq=segment.seq + mine[1], ack=segment.ack + other[1], payload=payload))
        mine[0] += 1
        mine[1] += len(payload) - len(segment.payload)
    return made
