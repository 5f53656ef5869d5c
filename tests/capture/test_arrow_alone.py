"""pyarrow in a process of ours: without pandas until a DataFrame is made."""

import subprocess
import sys

ASKED = """
import sys
from wirecheck.capture.arrow_alone import process_is_ours
if sys.argv[1] == "alone": process_is_ours()
import pyarrow as pa
column = pa.array([1, 2])
print("pandas" in sys.modules, end=" ")
print(pa.default_memory_pool().backend_name, end=" ")
print(list(pa.table({"a": column}).to_pandas()["a"]), len(sys.meta_path))
"""


def said(how):
    result = subprocess.run([sys.executable, "-c", ASKED, how], capture_output=True, text=True, check=True, timeout=120)
    return result.stdout.split(" ", 2)


def test_pandas_comes_only_with_the_first_data_frame():
    alone, together = said("alone"), said("together")
    assert alone[2] == together[2]  # the same frame, and no finder is left behind
    assert (alone[0], together[0]) == ("False", "True")
    assert alone[1] == "system"
