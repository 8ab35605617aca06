#!/usr/bin/env bash
# Measures how misbehaving clients affect others: the throughput and latency of 16 connections that
# request the key `good` from `paceline serve`, alone and while other clients send slow heads, send
# garbage, disconnect, or flood the server with keys. Then the memory of a new server for each kind of client that
# occupies memory without a token, which must stay below a bound, and the status that a client of another address gets.
#
#   crates/cli/benches/robustness.sh
#   SECONDS_EACH=20 crates/cli/benches/robustness.sh
#   BUILD=no crates/cli/benches/robustness.sh    measures the existing build, or PACELINE=path/of/another
#
# The misbehaving clients run on the same CPUs, which slows the server down too. Errors must be 0.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."

SECONDS_EACH=${SECONDS_EACH:-10}
paceline=${PACELINE:-target/dist/paceline}
work=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; rm -rf "$work"' EXIT

[ "${BUILD:-yes}" = no ] || cargo build --profile dist -p paceline-cli
cat >"$work/paceline.yaml" <<'YAML'
serve:
  max_requests: 1000000000
  bounds: {keys: 20000, head_timeout: 5s}
  keys:
    - {key_pattern: queue, max_requests_per_window: 1, window_millis: 60000, max_requests_in_queue: 1000}
    - {key_pattern: "stay-.*", key_pattern_is_regex: true, window_millis: 3600000}
YAML
"$paceline" serve --config "$work/paceline.yaml" --port 0 >"$work/out" 2>"$work/log" &
server=$!
pids+=("$server")
until url=$(sed -n 's/^listening on //p' "$work/out") && [ -n "$url" ]; do sleep 0.05; done

# Measures the well-behaved clients while a command runs, if given.
measure() {
  local name=$1 background=
  shift
  if [ $# -gt 0 ]; then
    "$@" >"$work/background" 2>&1 &
    background=$!
    pids+=("$background")
    sleep 1
  fi
  "$paceline" bench "$url" --connections 16 --duration "${SECONDS_EACH}s" --path /rate/good --json |
    python3 -c "
import json, sys
r = json.load(sys.stdin)
m = r['latency_ms']
print(f'''{sys.argv[1]:<28} {r['requests_per_second']:>10.0f} {m['p50']:>8.3f} {m['p99']:>8.3f} {m['max']:>8.1f} {r['errors']:>7} {int(sys.argv[2]) // 1024:>7}''')
" "$name" "$(awk '/VmRSS/ {print $2}' "/proc/$server/status")"
  [ -z "$background" ] || { kill "$background" 2>/dev/null; wait "$background" 2>/dev/null; } || true
}

printf '%-28s %10s %8s %8s %8s %7s %7s\n' other_clients requests/s p50_ms p99_ms max_ms errors rss_mib
address=${url#http://}
measure none
measure "500 slow heads" python3 crates/cli/benches/robustness.py slow "$address"
measure "20 sending garbage" python3 crates/cli/benches/robustness.py garbage "$address"
measure "100 disconnecting" python3 crates/cli/benches/robustness.py disconnect "$address"
# Floods of keys that are never repeated: keys that are idle after a second, and keys with a window of
# an hour, which soon exceed the bound.
flood=("$paceline" bench "$url" --connections 16 --keys 1000000000 --duration "$((SECONDS_EACH + 1))s")
measure "short-lived keys" "${flood[@]}"
cat "$work/background"
measure "keys above the bound" "${flood[@]}" --path "/rate/stay-{key}"
cat "$work/background"
measure none

cat >"$work/memory.yaml" <<'YAML'
serve:
  max_requests: 1000000000
  upstreams: {up: {base_url: "http://127.0.0.1:9", provider: openai}}
  keys: [{key_pattern: "stay-.*", key_pattern_is_regex: true, window_millis: 3600000}]
YAML

# Starts a server and clients that occupy its memory, and compares it with a bound in MiB.
occupy() {
  local kind=$1 bound=$2 server client url rss status
  "$paceline" serve --config "$work/memory.yaml" --port 0 >"$work/out" 2>"$work/log" &
  server=$!
  pids+=("$server")
  until url=$(sed -n 's/^listening on //p' "$work/out") && [ -n "$url" ]; do sleep 0.05; done
  python3 crates/cli/benches/memory.py "$kind" "${url#http://}" >"$work/client" 2>&1 &
  client=$!
  pids+=("$client")
  until grep -qs ready "$work/client" || ! kill -0 "$client" 2>/dev/null; do sleep 0.1; done
  sleep "$SECONDS_EACH"
  rss=$(awk '/VmHWM/ {print int($2 / 1024)}' "/proc/$server/status")
  status=$(curl -s -m 5 -o /dev/null -w '%{http_code}' --interface 127.0.0.2 "$url/v1/reserve" --json '{"keys": ["a"]}' || true)
  printf '%-28s %10s %10s %8s\n' "$kind" "$rss" "$bound" "$status"
  [ "$rss" -le "$bound" ] && [ "$status" = 201 ] || failed=yes
  kill "$client" "$server"
  wait "$client" "$server" 2>/dev/null || true
}

failed=no
printf '\n%-28s %10s %10s %8s\n' occupied_by peak_mib bound_mib others
for kind in page:100 pages:200 document:200 byte:200 silent:200 heads:250 gzip:250 debug:200 metrics:200 stats:300 \
  bodies:350 streams:350 uploads:350; do
  occupy "${kind%:*}" "${kind#*:}"
done
[ "$failed" = no ] || { echo "memory above its bound, or another client was not served" >&2; exit 1; }
