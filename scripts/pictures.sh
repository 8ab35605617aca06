#!/usr/bin/env bash
# Creates docs/pictures/: the terminal of a batch run, and the live page of a server under load. Needs
# cargo, tmux, chromium, chromedriver and python3; takes two minutes after the build.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
for tool in tmux chromium chromedriver python3; do
  command -v "$tool" >/dev/null || { echo "scripts/pictures.sh: $tool is not installed" >&2; exit 2; }
done
cargo build -p paceline-cli
exec python3 scripts/pictures.py "${CARGO_TARGET_DIR:-target}/debug/paceline" docs/pictures
