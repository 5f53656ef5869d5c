"""The user name in the first SASL token of a login: PLAIN and SCRAM. All other bytes of a token are secret.

Rule: a token is read only if it has exactly the form that Kafka's clients send. What has any other form has no name
here, and stays redacted as a whole.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from wirecheck.decode.holes import Field

MOST_BYTES = 255
"""Of a user name; a longer one is not read."""
LONGEST_TOKEN = 1 << 14
SCRAM_NAME = rb"n,(?:a=(?P<authorized>[^,]*))?,n=(?P<name>[^,]+)"
SCRAM = {False: re.compile(SCRAM_NAME + rb",r=[\x21-\x2b\x2d-\x7e]+"), True: re.compile(SCRAM_NAME)}
"""Client-first-message (RFC 5802), by whether it is redacted: then it ends with the name. A message with an extension
has no name here: `tokenauth=true` makes the name the ID of a delegation token, which is secret (KIP-48).
"""
PLAIN_NAME = rb"(?P<authorized>[^\0]*)\0(?P<name>[^\0]+)"
PLAIN = {False: re.compile(PLAIN_NAME + rb"\0[^\0]+"), True: re.compile(PLAIN_NAME)}
"""RFC 4616: authorization identity, name, password."""
FORMS = {"PLAIN": PLAIN, "SCRAM-SHA-256": SCRAM, "SCRAM-SHA-512": SCRAM}
"""By SASL mechanism. OAUTHBEARER's and GSSAPI's names are in tokens that are secret as a whole."""


class SaslName(NamedTuple):
    """Who logs in."""

    name: str
    end: int
    """Bytes of the token up to the end of the name. The secret follows, or a nonce."""


def sasl_name(mechanism: str | None, token: Field) -> SaslName | None:
    """The name in the bytes of a SaslAuthenticate request; None if they are of another form, or the login's mechanism
    was not seen. A redacted token has one hole, from the end of the name to its own end.
    """
    forms = FORMS.get(mechanism or "")
    size = len(token)
    if forms is None or size > LONGEST_TOKEN:
        return None
    redacted = bool(len(token.holes))
    upto = int(token.holes[0, 0]) if redacted else size
    if redacted and token.holes.tolist() != [[upto, size]]:
        return None
    found = forms[redacted].fullmatch(token.bytes(0, upto))
    if found is None or len(found["name"]) > MOST_BYTES or found["authorized"] not in {None, b"", found["name"]}:
        return None
    try:
        name = found["name"].decode()
    except UnicodeDecodeError:
        return None
    if forms is SCRAM:
        if re.search("=(?!2C|3D)", name):
            return None
        name = name.replace("=2C", ",").replace("=3D", "=")
    return SaslName(name, found.end("name")) if name.isprintable() else None
