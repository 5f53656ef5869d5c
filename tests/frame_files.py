"""Files of frames made from tables, with the metadata that an agent writes."""

import pyarrow.parquet as pq

from wirecheck.capture import frames, frames_file

NO_SPAN = frames_file.Span(0, 0)


def write(table, path, **options):
    """What the rows say stands in the footer too, where the rows say it."""
    pq.write_table(table.replace_schema_metadata(metadata(table)), path, **options)
    return path


def metadata(table):
    def first(name, otherwise):
        return table[name][0].as_py() if name in table.column_names and table.num_rows else otherwise

    stamp = frames.Stamp(first("cluster", "L"), first("agent", "a"))
    whole = [table.column_names.count(name) for name in ("kind", "ts_ns")] == [1, 1]
    try:
        span = frames_file.span_of(table) if whole else NO_SPAN
    except (TypeError, ValueError):  # of a column that holds something else
        span = NO_SPAN
    return frames_file.entries(stamp, first("file_seq", 1), span)
