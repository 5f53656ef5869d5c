"""The judge's two bars, in CPU seconds: `python -m bench.judge speaking|fleet|fleet-state [SCALE [PROFILE]]`.

2,000 connections that speak in every batch of 2 s, over two minutes of which the first does not count, as every row is
new in it: at most 0.5 s a batch, state read and written too, and at most 100 subjects checked again.
200 brokers with 100,000 partitions, 10,000 clients and 20,000 connections, a batch of 15 s: at most 6 s for filing and
judging (`fleet`); `fleet-state` has state as bytes besides. SCALE makes all of it so many times smaller. Of the
fleet the first three batches do not count. There is no peer.
"""

import cProfile
import sys
import time
from statistics import mean

from tests.judge.busy_cluster import BEGIN_NS
from tests.judge.steady import FLEET_STEP_NS, STEP_NS, Batch, Fleet, Kept, Speaking, Step


def main(what: str, scale: int = 1, profile: str = "") -> None:
    cluster = Speaking(2_000 // scale) if what == "speaking" else Fleet(200 // scale, 10_000 // scale, 10_000 // scale)
    step_ns, settled, batches = (STEP_NS, 30, 60) if what == "speaking" else (FLEET_STEP_NS, 3, 6)
    step = Kept() if what == "fleet" else Step()
    found, profiler = list[Batch](), cProfile.Profile(time.process_time)
    for number in range(batches):
        claims = [*cluster.batch(number)]
        if profile and number >= settled:
            profiler.enable()
        found.append(step.batch(claims, BEGIN_NS + (number + 1) * step_ns))
        profiler.disable()
    for name in found[0]._fields:
        values = [getattr(batch, name) for batch in found]
        steady = values[settled:]
        print(f"{name:12} first {values[0]:.6g}, then mean {mean(steady):.6g}, least {min(steady):.6g}")
    if profile:
        profiler.dump_stats(profile)


if __name__ == "__main__":
    main(sys.argv[1], int(dict(enumerate(sys.argv)).get(2, "1")), *sys.argv[3:4])
