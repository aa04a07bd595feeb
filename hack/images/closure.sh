#!/bin/sh
# closure.sh DIR FILE…: copies FILEs and the shared libraries they need into DIR, at the same paths. Runs in an image build.
set -eu
into=$1; shift
for file in "$@"; do
  { echo "$file"; ldd "$file" 2>/dev/null | grep -o '/[^ ]*'; } | while read -r path; do
    mkdir -p "$into$(dirname "$path")"
    cp -L "$path" "$into$path"
  done
done
