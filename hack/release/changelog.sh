#!/usr/bin/env bash
# Prints the changes of a release: the section of CHANGELOG.md for users, then all commits since the last tag, by area.
#   hack/release/changelog.sh VERSION        VERSION is vMAJOR.MINOR.PATCH
set -euo pipefail
cd "$(dirname "$0")/../.."
version=${1:?usage: hack/release/changelog.sh VERSION}
# The first release has no tag before it. With a tag, an error of git ends the script.
tags=$(git tag --merged HEAD --list 'v[0-9]*') last=""
if grep -qvxF -e "$version" -e "" <<<"$tags"; then
  last=$(git describe --tags --abbrev=0 --match 'v[0-9]*' --exclude "$version" HEAD)
fi

echo "# Changes of $version"
# A section is named by the version without the letter, or `Unreleased` before the version is chosen.
awk -v version="${version#v}" '/^## / { shown = $2 == version || $2 == "Unreleased"; next } shown' CHANGELOG.md
echo "## Commits${last:+ since $last}"
# Subjects are `area: verb object`.
git log --no-merges --format='%h%x09%s' ${last:+"$last..HEAD"} |
  awk -F'\t' '{ area = "without an area"; text = $2
      if (match(text, /^[A-Za-z][A-Za-z0-9-]*((, | and )[A-Za-z0-9-]+)*: /)) { area = tolower(substr(text, 1, RLENGTH - 2)); text = substr(text, RLENGTH + 1) }
      print area "\t" text "\t" $1 }' |
  LC_ALL=C sort -t $'\t' -s -k1,1 |
  awk -F'\t' '$1 != area { area = $1; printf "\n### %s\n", area } { printf "- %s (%s)\n", $2, $3 }'
