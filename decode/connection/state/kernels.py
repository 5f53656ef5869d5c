"""The compiled entries into following: what Python calls, once per call of the follower.

Knows: which of the kernels Python calls; each is compiled with everything below it as one, and kept.
Refuses to know: what the kernels do.
Rule: a kernel that Python calls is listed here; all others of following are plain @njit, or each would be kept apart.
"""

from __future__ import annotations

from wirecheck.decode.compiled import cached_njit
from wirecheck.decode.connection import output, tracker
from wirecheck.decode.connection.state import retention

follow, lapse, relieve = map(cached_njit, (tracker.follow, tracker.lapse, tracker.relieve))
touched, unsettled, settle, pack = map(
    cached_njit, (retention.touched, retention.unsettled, retention.settle, retention.pack)
)
empty_lines = cached_njit(output.empty_lines)
