#!/usr/bin/env bash
# Makes docs/pictures/ from the real command and the real server: a batch run, and the live page under
# load. Needs cargo, tmux, chromium with its driver, and python3; takes two minutes beside building.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
for tool in tmux chromium chromedriver python3; do
  command -v "$tool" >/dev/null || { echo "scripts/pictures.sh: $tool is missing" >&2; exit 2; }
done
cargo build -p tollgate-cli
exec python3 scripts/pictures.py "${CARGO_TARGET_DIR:-target}/debug/tollgate" docs/pictures
