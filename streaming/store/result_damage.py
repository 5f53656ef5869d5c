"""Files of result tables that are not as they were written: which one, why, and what to do, in one line.

Knows nothing of tables. A folder of results may have been copied in part, cut by a full disk, or edited.
"""

FIX = "restore it from a copy, or write the results again into another folder"


class DamagedResultError(ValueError):
    """A file of a result table cannot be read, or is that of another table."""

    def __init__(self, path: object, why: object) -> None:
        lines = str(why).strip().splitlines() or ["it cannot be read"]
        super().__init__(f"{path}: {lines[0].rstrip('.')}; {FIX}")
