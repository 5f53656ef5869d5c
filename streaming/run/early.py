"""The query, begun before all frames are there: it judges what a capture has given while the capture still gives.

Knows: that one agent's files appear in one folder, each whole, and when the last of them is there.
Refuses to know: who writes them, who starts Spark (it waits for one that is begun), and what a result is.
Rule: it saves time and nothing else. What it did not do, or failed at, `replay.run` does behind it, from the same
checkpoint over the same folder; a batch that was cut off is repeated there.
"""

from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

from wirecheck.streaming.spark.pipeline import Job, start
from wirecheck.streaming.spark.session import await_session
from wirecheck.streaming.steps.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery

LOOKS: dict[str, object] = {"processingTime": "200 milliseconds"}
"""How often it looks for files when it has none."""


class Early:
    """One such query. It begins when Spark is there, unless the frames are all there by then."""

    def __init__(self, job: Job, settings: Settings, partitions: str) -> None:
        self.job = replace(job, trigger=LOOKS)
        self.query: StreamingQuery | None = None
        self.judged = False
        self._settings, self._partitions = settings, partitions
        self._whole, self._wanted = Event(), True
        Path(job.frames).mkdir(parents=True, exist_ok=True)
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def whole(self) -> None:
        """All frames are there."""
        self._whole.set()

    def ends(self, patience_s: float) -> bool:
        """Has it ended, within so many seconds? `judged` says whether all is done."""
        self._thread.join(patience_s)
        return not self._thread.is_alive()

    def give_up(self) -> None:
        """Nobody wants it any more, and whoever says so ends Spark."""
        self._wanted = False
        self._whole.set()

    def _run(self) -> None:
        try:
            spark = await_session()
            if self._whole.is_set():  # there is nothing to begin early
                return
            spark.conf.set("spark.sql.shuffle.partitions", self._partitions)
            self.query = start(spark, self.job, self._settings)
            self._whole.wait()
            if self._wanted:
                self.query.processAllAvailable()
                self.query.stop()
                self.judged = True
        except Exception:  # noqa: BLE001 - as the rule above has it: what is wrong, the second attempt will say
            self.judged = False
