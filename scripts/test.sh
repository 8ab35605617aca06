#!/usr/bin/env bash
# Everything that has to hold before a change is merged: format, lints, docs, tests.
# Needs cargo; installs missing tools, and changes no installed ones.
#
# Long runs (property tests, soaks, kill and fault matrices, traces, every SDK, models) have a short
# form; `--full` runs them in full (`PACELINE_FULL=1`).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

for argument in "$@"; do
  case $argument in
    --full) export PACELINE_FULL=1 ;;
    *)
      echo "scripts/test.sh: unknown argument: $argument; usage: scripts/test.sh [--full]" >&2
      exit 2
      ;;
  esac
done

export CARGO_TERM_COLOR="${CARGO_TERM_COLOR:-auto}"
if [ "${CI:-}" = true ]; then
  export CARGO_INCREMENTAL=0
fi

# Prints and runs a command, then prints its duration.
step() {
  local started=$SECONDS
  printf '\n==> %s\n' "$*"
  "$@"
  printf '==> %s s, %s s in total\n' "$((SECONDS - started))" "$SECONDS"
}

# Starts a command that uses one core beside the following steps, up to `await`.
beside() {
  beside_log=$(mktemp)
  "$@" >"$beside_log" 2>&1 &
  beside=$!
}
await() {
  local status=0
  wait "$beside" || status=$?
  cat "$beside_log"
  rm -f "$beside_log"
  beside=
  return "$status"
}
trap '[ -z "${beside:-}" ] || { kill "$beside" 2>/dev/null || true; rm -f "$beside_log"; }' EXIT

# Sets a variable to a folder beside the repository, unless it is set or the folder is missing.
data() {
  local name=$1 folder=../shared/$2
  if [ -n "${!name:-}" ]; then
    echo "$name=${!name}"
  elif [ -d "$folder" ]; then
    export "$name=$(cd "$folder" && pwd)"
    echo "$name=${!name}"
  else
    echo "$name is not set and $folder does not exist: tests that need it are skipped"
  fi
}

# Debian installs servers outside of a user's PATH.
export PATH="$PATH:/usr/sbin:/sbin"

# Installs missing Debian packages.
packages() {
  local missing=()
  python3 -c 'import ensurepip, venv' >/dev/null 2>&1 || missing+=(python3-venv)
  command -v curl >/dev/null || missing+=(curl)
  command -v redis-server >/dev/null || missing+=(redis-server)
  command -v nats-server >/dev/null || missing+=(nats-server)
  command -v ip >/dev/null || missing+=(iproute2)
  command -v node >/dev/null || missing+=(nodejs)
  command -v npm >/dev/null || missing+=(npm)
  command -v chromium >/dev/null || missing+=(chromium)
  command -v chromedriver >/dev/null || missing+=(chromium-driver)
  command -v valgrind >/dev/null || missing+=(valgrind)
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}"
  else
    echo "not installed: ${missing[*]}; tests that need them fail or are skipped"
  fi
}

# Tests install the official SDKs of Python and Node into separate folders, and start servers and the
# browser on free ports of 127.0.0.1.
packages

cargo fmt --version >/dev/null 2>&1 || rustup component add rustfmt
cargo clippy --version >/dev/null 2>&1 || rustup component add clippy
data PACELINE_CORPUS corpus
data PACELINE_TRACES traces

# Each feature must build by itself (the other features are implied by these), and each package with its
# default features.
check_features() {
  local feature package
  local -x RUSTFLAGS="${RUSTFLAGS:-} -D warnings"
  for feature in zones regex reqwest-middleware axum yaml sqlite cluster redis nats metrics tokenizer; do
    step cargo check --quiet --no-default-features --features "$feature"
  done
  for feature in zones regex schema; do
    step cargo check --quiet --package paceline-limiter --no-default-features --features "$feature"
  done
  step cargo check --quiet --package paceline-store --no-default-features
  for feature in redis nats schema; do
    step cargo check --quiet --package paceline-cluster --no-default-features --features "$feature"
  done
  for package in crates/*/; do
    step cargo check --quiet --package "paceline-$(basename "$package")"
  done
}
CARGO_TARGET_DIR=target/features beside check_features

step cargo fmt --all --check
step cargo clippy --workspace --all-targets --all-features -- -D warnings
step cargo clippy --all-targets --no-default-features -- -D warnings
step cargo clippy --package paceline-limiter --all-targets --no-default-features -- -D warnings
step cargo clippy --all-targets -- -D warnings
step env RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --all-features
await

# Most tests wait, so that they run on more threads than CPUs.
export NEXTEST_TEST_THREADS="${NEXTEST_TEST_THREADS:-$((2 * $(nproc)))}"
if cargo nextest --version >/dev/null 2>&1; then
  runner=(cargo nextest run)
else
  echo "cargo-nextest is not installed: using cargo test"
  runner=(cargo test)
fi
step "${runner[@]}" --workspace --all-features --tests --examples
# Instruction counts of the hot paths, compared with benches/instructions/accepted.toml.
beside step bash scripts/instructions.sh
# Parsing must not depend on features of serde_json, which other crates may enable. Without features of the
# limiter, errors name the missing one.
step "${runner[@]}" --package paceline-provider \
  --features serde_json/arbitrary_precision,serde_json/preserve_order --test provider
step "${runner[@]}" --package paceline-limiter --no-default-features --test missing_feature
step "${runner[@]}" --package paceline --no-default-features --test it -- missing_feature
step cargo test --doc --workspace --all-features
# Models of concurrent threads: see crates/limiter/tests/models. A separate target directory keeps the flag from
# rebuilding everything else.
step env RUSTFLAGS="${RUSTFLAGS:-} --cfg shuttle -D warnings" \
  cargo test --package paceline-limiter --no-default-features --test models --target-dir target/models
await

printf '\nAll checks passed (%s s).\n' "$SECONDS"
