"""The compiled entries into following: what Python calls, once per call of the follower.

Knows: which of the kernels Python calls; each is compiled with everything below it as one, and kept.
Refuses to know: what the kernels do.
Rule: a kernel that Python calls is listed here; all others of following are plain @njit, or each would be kept apart.
"""

from __future__ import annotations

from decode.compiled import cached_njit
from decode.following import keeping, output, walk

follow, lapse, relieve = map(cached_njit, (walk.follow, walk.lapse, walk.relieve))
touched, unsettled, settle, pack = map(cached_njit, (keeping.touched, keeping.unsettled, keeping.settle, keeping.pack))
empty_lines = cached_njit(output.empty_lines)
