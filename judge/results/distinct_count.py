"""How many different things there were, without keeping them: a sketch of bounded size.

Knows: the K least hashes of what was counted (Bar-Yossef et al., "Counting Distinct Elements in a Data Stream", 2002).
Does not know what is counted.
Rule: exact below K, within some 5 % above; a function of the set, whatever the order and however often it is said.
"""

import hashlib
from bisect import bisect_left, insort

K = 512
"""The standard error is 1 / sqrt(K - 2): 4.4 %."""
SPACE = 1 << 64


class Distinct:
    def __init__(self, least: list[int] | None = None) -> None:
        self.least = least or []
        """The least hashes, ascending."""

    def add(self, thing: str) -> bool:
        """Whether the sketch has changed."""
        number = int.from_bytes(hashlib.blake2b(thing.encode(errors="surrogatepass"), digest_size=8).digest())
        if len(self.least) == K and number >= self.least[-1]:
            return False
        at = bisect_left(self.least, number)
        if at < len(self.least) and self.least[at] == number:
            return False
        insort(self.least, number)
        del self.least[K:]
        return True

    def __len__(self) -> int:
        return len(self.least) if len(self.least) < K else (K - 1) * SPACE // self.least[-1]
