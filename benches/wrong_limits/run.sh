#!/usr/bin/env bash
# Compares `paceline batch`, the official Python SDK and an AIMD on concurrency (clients.py) against
# simulated providers whose limits are unknown, wrong or changing (cases.py), over HTTP. Each client has
# a provider of its own.
#
#   benches/wrong_limits/run.sh                       900 requests per case, takes about half an hour
#   benches/wrong_limits/run.sh --long                300 s per case
#   benches/wrong_limits/run.sh --chance              limits beside refusals at random
#   benches/wrong_limits/run.sh --subject paceline 'told nothing' '8 in flight'
#   BUILD=no benches/wrong_limits/run.sh --list       uses the existing build
#
# A cell holds the answered requests, the used part of what the provider could have given from the first
# request to the last answer, and the 429s, both from the provider's log; beside refusals at random also the
# 429s above those that chance makes expected. * marks a client that was stopped after twice the duration of
# an ideal one and 150 s.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

requirements=crates/serve/tests/sdk/requirements.txt
environment=target/wrong-limits-venv
[ "${BUILD:-yes}" = no ] || cargo build --profile dist -p paceline-cli
if ! cmp -s "$requirements" "$environment/installed.txt"; then
  python3 -m venv --clear "$environment"
  "$environment/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$requirements"
  cp "$requirements" "$environment/installed.txt"
fi
exec "$environment/bin/python" -B benches/wrong_limits/bench.py "$@"
