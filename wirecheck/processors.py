"""How many processors this process may use, and whether they are all taken."""

import os


def processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def is_busy() -> bool:
    """Whether more than twice as many processes are ready to run as there are processors."""
    return os.getloadavg()[0] > 2 * processors()
