#!/usr/bin/env bash
# Compares the throughput and latency of POST /rate/{key} of `paceline serve`, throttlecrab-server and
# an axum handler without a limiter: HTTP/1.1 with wrk, HTTP/2 (h2c) with h2load, 64 connections with
# one request in flight each, 1 key and 10,000 keys. Every request is granted.
#
#   crates/cli/benches/serve.sh                  takes about three minutes
#   SECONDS_EACH=10 ROUNDS=5 crates/cli/benches/serve.sh
#   BUILD=no crates/cli/benches/serve.sh         measures the existing build
#
# Each value is the median of the rounds, in which the servers take turns. CPU is the user and system
# time of the server per answered request. The client has one thread and runs on the same machine.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."

SECONDS_EACH=${SECONDS_EACH:-4}
ROUNDS=${ROUNDS:-3}
CONNECTIONS=${CONNECTIONS:-64}
THROTTLECRAB=0.4.40
peers=target/peers
work=$(mktemp -d)
servers=()
trap 'kill "${servers[@]}" 2>/dev/null || true; rm -rf "$work"' EXIT

# Installs missing packages.
packages() {
  local missing=()
  command -v wrk >/dev/null || missing+=(wrk)
  command -v h2load >/dev/null || missing+=(nghttp2-client)
  [ -x "$peers/bin/throttlecrab-server" ] || command -v protoc >/dev/null || missing+=(protobuf-compiler)
  [ ${#missing[@]} -gt 0 ] || return 0
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}"
}

build() {
  cargo build --profile dist -p paceline-cli -p paceline-serve --bin paceline --example bare_handler
  [ -x "$peers/bin/throttlecrab-server" ] ||
    cargo install --locked --root "$peers" --target-dir "$peers/build" "throttlecrab-server@$THROTTLECRAB"
}

# Starts a server that prints its address, and sets `url` and `pid`.
start() {
  local log=$work/$1.log
  shift
  "$@" >"$log" 2>/dev/null &
  pid=$!
  servers+=("$pid")
  until url=$(sed -n 's/^listening on //p' "$log") && [ -n "$url" ]; do
    kill -0 "$pid"
    sleep 0.05
  done
}

# throttlecrab neither prints its address nor supports port 0.
start_throttlecrab() {
  local port
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  "$peers/bin/throttlecrab-server" --http --http-host 127.0.0.1 --http-port "$port" --log-level error \
    >/dev/null 2>&1 &
  pid=$!
  servers+=("$pid")
  url=http://127.0.0.1:$port
  until curl -sf "$url/health" >/dev/null; do
    kill -0 "$pid"
    sleep 0.05
  done
}

# Prints the CPU time of a process in hundredths of a second (proc(5): fields 14 and 15 of stat).
cpu() {
  sed 's/.*) //' "/proc/$1/stat" | awk '{print $12 + $13}'
}

# http1 and http2 print: requests, seconds, p50 and p99 in microseconds, errors.
http1() {
  KEYS=$keys REQUEST_PATH=$path REQUEST_BODY=$body wrk -t1 -c"$CONNECTIONS" -d"${SECONDS_EACH}s" \
    -s crates/cli/benches/serve/keys.lua "$url" | sed -n 's/^MEASURED //p'
}

http2() {
  local request=(-H ':method: POST')
  [ -z "$body" ] || { printf '%s' "${body//\{key\}/bench-0}" >"$work/body"; request=(-d "$work/body" -H 'content-type: application/json'); }
  seq 0 $((keys - 1)) | sed "s|.*|$url${path//\{key\}/bench-&}|" >"$work/urls"
  rm -f "$work/log"
  h2load -t1 -c"$CONNECTIONS" -m1 -D"$SECONDS_EACH" "${request[@]}" --log-file="$work/log" -i "$work/urls" >/dev/null
  # Columns of the log: time of the request, status, latency in microseconds.
  sort -n -k3,3 "$work/log" | awk -v seconds="$SECONDS_EACH" '
    { latency[NR] = $3; if ($2 != 200) errors++ }
    END { print NR, seconds, latency[int((NR + 1) / 2)], latency[int(NR * 0.99 + 0.5)], errors + 0 }'
}

# Measures one server once. Appends to its file: requests per second, p50, p99, CPU, errors.
measure() {
  local before after measured
  before=$(cpu "$pid")
  measured=$($protocol)
  after=$(cpu "$pid")
  echo "$measured $((after - before))" |
    awk '{printf "%.0f %.3f %.3f %.1f %d\n", $1 / $2, $3 / 1000, $4 / 1000, $6 * 10000 / $1, $5}' \
      >>"$work/$protocol.$keys.$name"
}

# Prints the median of a column of a file.
median() {
  sort -n -k"$2,$2" "$1" | awk -v column="$2" '{row[NR] = $column} END {print row[int((NR + 1) / 2)]}'
}

table() {
  local file bare
  printf '%-10s %6s  %-24s %10s %7s %8s %8s %9s %7s\n' protocol keys server requests/s of_bare p50_ms p99_ms cpu_us errors
  for protocol in http1 http2; do
    for keys in 1 10000; do
      bare=$(median "$work/$protocol.$keys.bare" 1)
      for name in bare paceline throttlecrab; do
        file=$work/$protocol.$keys.$name
        [ -s "$file" ] || continue
        awk -v p="$protocol" -v k="$keys" -v n="$name" -v bare="$bare" -v r="$(median "$file" 1)" \
          -v a="$(median "$file" 2)" -v b="$(median "$file" 3)" -v c="$(median "$file" 4)" \
          '{errors += $5} END {printf "%-10s %6d  %-24s %10d %7.2f %8.3f %8.3f %9.1f %7d\n", p, k, n, r, r / bare, a, b, c, errors}' "$file"
      done
    done
  done
}

packages
[ "${BUILD:-yes}" = no ] || build
start bare target/dist/examples/bare_handler
bare=("$pid" "$url")
start paceline target/dist/paceline serve --port 0 --max-requests 1000000000
paceline=("$pid" "$url")
start_throttlecrab
throttlecrab=("$pid" "$url")

echo "$(nproc) processors, load $(cut -d' ' -f1-3 /proc/loadavg); $ROUNDS rounds of $SECONDS_EACH s, $CONNECTIONS connections"
for ((round = 0; round < ROUNDS; round++)); do
  for protocol in http1 http2; do
    for keys in 1 10000; do
      for name in bare paceline throttlecrab; do
        declare -n server=$name
        pid=${server[0]} url=${server[1]} path=/rate/{key} body=
        if [ "$name" = throttlecrab ]; then
          # Its key is in the body, and h2load sends the same body with every request.
          [ "$protocol.$keys" != http2.10000 ] || continue
          path=/throttle
          body='{"key":"{key}","max_burst":1000000000,"count_per_period":1000000000,"period":1,"quantity":1}'
        fi
        measure
      done
    done
  done
done
table
