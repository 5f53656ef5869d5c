"""What is counted of requests, of captures or of results: for `errors` and `latency`.

Knows: where the counts are, and what they rest on. Refuses to know: what is listed of them.
"""

from typing import TYPE_CHECKING

from wirecheck.commands import options
from wirecheck.commands.listing import need_messages, need_no_times
from wirecheck.commands.units import need_order
from wirecheck.session.frame_tables import capture_frames
from wirecheck.session.inputs import result_folder
from wirecheck.session.results import need_whole, traffic_of
from wirecheck.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirecheck.questions.traffic import Traffic
    from wirecheck.wording import TimeSpan


def show_traffic(
    inputs: tuple[str, ...],
    ports: tuple[int, ...],
    times: "tuple[TimeSpan | None, TimeSpan | None]",
    show: "Callable[[Traffic, str], None]",
    *,
    strict: bool,
) -> None:
    """Give `show` the counts, and a text of what they rest on. `times`: since when and until when, of results."""
    from wirecheck.questions.traffic import Traffic

    need_order(*times)
    folder = result_folder(inputs)
    if folder is not None:
        kept, coverage = traffic_of(options.session(), folder, ports, times)
        none = "" if kept.calls or kept.failures or not any(times) else ", none of them in these minutes"
        show(kept, f"{plural(coverage.messages, 'message')}, {coverage.decoded_messages:,} decoded{none}")
        need_whole(coverage, strict=strict)
        return
    need_no_times(*times)
    with capture_frames(options.session(), inputs, strict=strict) as frames:
        read = Traffic(dialects=options.dialects()).read(frames, ports)
        need_messages(read, inputs)
        show(read, read.text())
