#!/usr/bin/env bash
# Counts the instructions of the hot paths in benches/instructions and compares them with the accepted
# counts. Needs valgrind.
#
#   bash scripts/instructions.sh            fails if a count differs by more than 3 %, up or down
#   bash scripts/instructions.sh --accept   makes the current counts the accepted ones
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

accepted=benches/instructions/accepted.toml
target=target/instructions
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Flags for a specific CPU would change the counts, and valgrind may not support its instructions.
unset RUSTFLAGS CARGO_ENCODED_RUSTFLAGS CARGO_BUILD_TARGET

# Valgrind presents all x86-64 CPUs with AVX2 as the same model, so that memchr, aho-corasick and libc
# select the same code.
machine() {
  if grep -qsw avx2 /proc/cpuinfo; then echo "$(uname -m) avx2"; else uname -m; fi
}

toolchain() {
  echo "$(rustc -V), $(getconf GNU_LIBC_VERSION)"
}

# Prints the value of a field in the accepted file.
field() {
  sed -n "s/^$1 = \"\(.*\)\"$/\1/p" "$accepted"
}

# Appends the instructions of one operation of each case of a program to the counts.
count() {
  local program=$target/release/$1 name operations counted
  "$program" >"$work/cases"
  while read -r name operations; do
    # With a minimal environment, since its size moves the stack.
    env -i PATH="$PATH" valgrind --tool=callgrind --callgrind-out-file=/dev/null --log-file="$work/log" \
      --toggle-collect='*counted_operations*' "$program" "$name" </dev/null
    counted=$(sed -n 's/.*Collected : \([0-9]*\).*/\1/p' "$work/log")
    if [ "${counted:-0}" -lt "$operations" ]; then
      echo "$name: no instructions counted; $program needs its symbol table for valgrind" >&2
      exit 1
    fi
    echo "$name $((counted / operations))" >>"$work/counts"
  done <"$work/cases"
}

accept() {
  {
    echo '# Instructions of one operation, by `bash scripts/instructions.sh --accept`.'
    echo "machine = \"$(machine)\""
    echo "toolchain = \"$(toolchain)\""
    printf '\n[instructions]\n'
    sed 's/ / = /' "$work/counts"
  } >"$accepted"
  cat "$accepted"
}

# Prints the accepted count, the current count and the difference in percent for each case.
compare() {
  awk -v tolerance="$1" '
    FNR == NR { if (/^[a-z0-9_]+ = [0-9]+$/) accepted[$1] = $3; next }
    !($1 in accepted) { printf "%-16s %9s %9d  no accepted count\n", $1, "", $2; failed = 1; next }
    {
      percent = ($2 - accepted[$1]) * 100 / accepted[$1]
      differs = percent > tolerance || percent < -tolerance
      failed = failed || differs
      printf "%-16s %9d %9d %+7.2f %%%s\n", $1, accepted[$1], $2, percent, differs ? "  differs" : ""
      delete accepted[$1]
    }
    END {
      for (name in accepted) { printf "%-16s %9d %9s  no longer counted\n", name, accepted[name], ""; failed = 1 }
      exit failed
    }' "$accepted" "$work/counts"
}

check() {
  local tolerance=3
  if [ "$(toolchain)" != "$(field toolchain)" ]; then
    tolerance=10
    echo "accepted with $(field toolchain), counted with $(toolchain): $tolerance % are allowed instead of 3 %"
  fi
  printf '%-16s %9s %9s\n' instructions accepted now
  if ! compare "$tolerance"; then
    echo "instructions: the counts are not within $tolerance % of the accepted ones; fix the slower path, or accept" \
      "them with 'bash scripts/instructions.sh --accept' and explain the change in the commit" >&2
    exit 1
  fi
}

if [ "${1:-}" != --accept ] && [ "$(machine)" != "$(field machine)" ]; then
  echo "instructions: NOT CHECKED; accepted on $(field machine), this is $(machine)"
  exit 0
fi
if ! command -v valgrind >/dev/null; then
  echo "instructions: valgrind is not installed; install it with 'apt-get install valgrind'" >&2
  exit 1
fi
cargo build --locked --profile bench --package paceline-instructions --target-dir "$target"
count library
count rate
if [ "${1:-}" = --accept ]; then accept; else check; fi
