#!/usr/bin/env bash
# mypyc 2.4.1, two functions of a few lines that `mypy --strict` accepts and that Python runs right.
#
# What one would guess: mypyc is strict about types, and says so before it compiles: what mypy accepts, and Python runs
# without an error, runs compiled and gives the same.
# What happens: (1) A variable that is first one of two tuples of fixed lengths, and then (*a, *b), is accepted. Compiled,
# the assignment raises TypeError, because the new tuple has another length. (2) `x in (*a, *b)` is accepted and cannot
# be compiled: mypyc ends with an AssertionError about the star expression. `(*a, *b)` outside of `in` is compiled.
#
# Seen: 2026-11-29, Python 3.11, gcc 12. Source: modules of our own that were to be compiled, and the run below.
# Needs bash, python3 with its headers, a C compiler. Half a minute.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
python3 -m venv "$T/env"
export PATH="$T/env/bin:$PATH"
pip install -q mypy==2.4.1 setuptools==83.0.0 2> /dev/null
cd "$T"
cat > kept.py <<'P'
READS = ("Fetch", "ShareFetch")
STATES = ("stalled", "lost", "left")


def kept(reads: bool, states: bool) -> tuple[str, ...]:
    found = () if reads else READS
    found = found if states else (*found, *STATES)
    return found
P
cat > chosen.py <<'P'
READS = ("Fetch", "ShareFetch")
LOOKS = ("ListOffsets", "OffsetFetch")


def chosen(apis: list[str]) -> list[str]:
    return [api for api in apis if api in (*READS, *LOOKS)]
P
cat > run.py <<'P'
import kept

try:
    print("compiled" if kept.__file__.endswith(".so") else "plain", kept.kept(False, False))
except TypeError as error:
    print("compiled, TypeError:", error)
P
STRICT=$(mypy --strict kept.py chosen.py)
PLAIN=$(python run.py)
CHOSEN=$(python -c 'import chosen; print(chosen.chosen(["Fetch", "Produce"]))')
mypyc kept.py > kept.log 2>&1 || { tail -3 kept.log; exit 2; }
COMPILED=$(python run.py)
if mypyc chosen.py > chosen.log 2>&1; then REFUSED="compiled"; else REFUSED=$(grep -o "AssertionError.*" chosen.log | head -1); fi
printf 'mypy --strict: %s\nkept, plain: %s\nkept, compiled: %s\nchosen, plain: %s\nchosen, mypyc: %s\n' "$STRICT" "$PLAIN" "$COMPILED" "$CHOSEN" "$REFUSED"
if ! [[ $STRICT == Success* && $PLAIN == plain* && $COMPILED == *TypeError* && $CHOSEN == "['Fetch']" && $REFUSED == AssertionError* ]]; then
  echo "not as described: see above"; exit 1; fi
echo "as described: mypy accepts both, Python runs both, mypyc raises for one and cannot compile the other"
