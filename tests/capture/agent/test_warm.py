"""Whether the agent is compiled is known without compiling anything."""

import os
import subprocess
import sys

from wirecheck.capture.agent import warm

ASK = "from wirecheck.capture.agent import warm; print(warm.is_compiled(), warm.cache_folder())"


def test_after_it_was_warmed_it_is_compiled():
    warm.warm_ring()
    warm.warm()
    assert warm.is_compiled()


def test_where_nothing_was_compiled_it_says_so_and_compiles_nothing(tmp_path):
    env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_DISABLE_JIT": "0"}
    said = subprocess.run([sys.executable, "-c", ASK], env=env, capture_output=True, text=True, check=True).stdout
    assert said.split() == ["False", str(tmp_path)]
    assert not list(tmp_path.rglob("*.nbi"))
