#!/usr/bin/env bash
# Builds the site of docs/ into $REPOT_CACHE/site, and fails on a broken link. Not a part of .ci/run: `make check` has
# its own check of the links.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/env.sh
. hack/progress.sh

hack/packages.sh python3-venv
hack/tools.sh mkdocs
site=$REPOT_CACHE/site log=$REPOT_CACHE/log/site.log
say "building the pages of docs/ (log: $log)"
rm -rf "$site.new"
logged "$log" timeout 300 mkdocs build --strict --config-file hack/tools/mkdocs/mkdocs.yml --site-dir "$site.new" ||
  fail "a page is wrong; the lines above name the page"
rm -rf "$site"
mv "$site.new" "$site"
say "$(find "$site" -name '*.html' | wc -l) pages: open $site/index.html"
