"""Whether errors go on: one rule for cards, with all that is made of them, and for `errors`.

A client that is refused asks again; its own errors show how soon. It imports nothing of the project, so that every
package can use it.
"""

OFTEN = 3
"""Fewer errors than this in a row do not go on: each leader change gives every client one or two."""
INTERVALS = 3
MOMENT_NS = 15_000_000_000
LEAST_NS, MOST_NS = 10_000_000_000, 120_000_000_000


def patience_ns(count: int, first_ns: int, last_ns: int, least_ns: int = LEAST_NS, most_ns: int = MOST_NS) -> int:
    """How long `count` errors, the first and the last at these times, may stay away and still go on: three of their
    intervals, at least and at most this.
    """
    interval_ns = (last_ns - first_ns) // max(count - 1, 1)
    return min(max(least_ns, INTERVALS * interval_ns), most_ns)


def goes_on(count: int, first_ns: int, last_ns: int, end_ns: int) -> bool:
    """Whether they still did when the capture ended, if no success is known."""
    return end_ns - last_ns <= patience_ns(count, first_ns, last_ns)


def waits_on(last_ns: int, end_ns: int) -> bool:
    """Whether a client that gets nowhere without an error still did when the capture ended: it is known to have lived
    a moment before.
    """
    return end_ns - last_ns <= MOMENT_NS
