"""Runs the cells of a notebook one after the other and stores what they print and return, as Jupyter does.

    .venv/bin/python tools/run_notebook.py examples/first-look.ipynb

A notebook without outputs shows nothing on a page that does not run it. Jupyter itself is not needed.
"""

import ast
import contextlib
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def executed(notebook: Row) -> Row:
    """The same notebook with the outputs of its cells."""
    names: Row = {"__name__": "__main__"}
    count = 0
    cells = []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            count += 1
            outputs = outputs_of("".join(cell["source"]), names, count)
            cells.append(cell | {"execution_count": count, "outputs": outputs})
        else:
            cells.append(cell)
    return notebook | {"cells": cells}


def outputs_of(source: str, names: Row, count: int) -> list[Row]:
    """What a cell prints, and the value of its last line if that is an expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), names)
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), names) if isinstance(last, ast.Expr) else None
    outputs: list[Row] = []
    if printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": lines(printed.getvalue())})
    if value is not None:
        data = {"text/plain": lines(repr(value))}
        if html := getattr(value, "_repr_html_", None):
            data = {"text/html": lines(html()), **data}
        outputs.append({"data": data, "execution_count": count, "metadata": {}, "output_type": "execute_result"})
    return outputs


def lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def run(path: Path) -> Row:
    """The notebook at a path, executed in its folder."""
    with contextlib.chdir(path.resolve().parent):
        return executed(json.loads(Path(path.name).read_text(encoding="utf-8")))


def text_of(notebook: Row) -> str:
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    os.environ.setdefault("COLUMNS", "100")
    for name in sys.argv[1:]:
        Path(name).write_text(text_of(run(Path(name))), encoding="utf-8")
