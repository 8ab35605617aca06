#!/usr/bin/env bash
# What others notice of clients that mean no good: how fast `tollgate serve` answers 16 connections on
# the key `good` by itself, and while others drip, send garbage, vanish, or come with ever new keys.
#
#   crates/cli/benches/robustness.sh
#   SECONDS_EACH=20 crates/cli/benches/robustness.sh
#   BUILD=no crates/cli/benches/robustness.sh    measures what was built before
#
# The bad clients take of the same processors: a slower server is theirs as well. Errors must be 0.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."

SECONDS_EACH=${SECONDS_EACH:-10}
tollgate=target/dist/tollgate
work=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; rm -rf "$work"' EXIT

[ "${BUILD:-yes}" = no ] || cargo build --profile dist -p tollgate-cli
cat >"$work/tollgate.yaml" <<'YAML'
serve:
  max_requests: 1000000000
  bounds: {keys: 20000, head_timeout: 5s}
  keys:
    - {key_pattern: queue, max_requests_per_window: 1, window_millis: 60000, max_requests_in_queue: 1000}
    - {key_pattern: "stay-.*", key_pattern_is_regex: true, window_millis: 3600000}
YAML
"$tollgate" serve --config "$work/tollgate.yaml" --port 0 >"$work/out" 2>"$work/log" &
server=$!
pids+=("$server")
until url=$(sed -n 's/^listening on //p' "$work/out") && [ -n "$url" ]; do sleep 0.05; done

# Measures the good clients while a bad one runs, if there is any.
measure() {
  local name=$1 bad=
  shift
  if [ $# -gt 0 ]; then
    "$@" >"$work/bad" 2>&1 &
    bad=$!
    pids+=("$bad")
    sleep 1
  fi
  "$tollgate" bench "$url" --connections 16 --duration "${SECONDS_EACH}s" --path /rate/good --json |
    python3 -c "
import json, sys
r = json.load(sys.stdin)
m = r['latency_ms']
print(f'''{sys.argv[1]:<28} {r['requests_per_second']:>10.0f} {m['p50']:>8.3f} {m['p99']:>8.3f} {m['max']:>8.1f} {r['errors']:>7} {int(sys.argv[2]) // 1024:>7}''')
" "$name" "$(awk '/VmRSS/ {print $2}' "/proc/$server/status")"
  [ -z "$bad" ] || { kill "$bad" 2>/dev/null; wait "$bad" 2>/dev/null; } || true
}

printf '%-28s %10s %8s %8s %8s %7s %7s\n' "meanwhile" requests/s p50_ms p99_ms max_ms errors rss_mib
address=${url#http://}
measure nobody
measure "500 that drip" python3 crates/cli/benches/robustness.py drip "$address"
measure "20 that send garbage" python3 crates/cli/benches/robustness.py garbage "$address"
measure "100 that wait and vanish" python3 crates/cli/benches/robustness.py vanish "$address"
# Never the same key twice: keys that are soon as good as new, and keys of an hour, which are soon too many.
flood=("$tollgate" bench "$url" --connections 16 --keys 1000000000 --duration "$((SECONDS_EACH + 1))s")
measure "ever new keys" "${flood[@]}"
cat "$work/bad"
measure "more keys than are kept" "${flood[@]}" --path "/rate/stay-{key}"
cat "$work/bad"
measure nobody
