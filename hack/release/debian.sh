#!/usr/bin/env bash
# Files of pinned Debian packages for images of a release, from any Debian or Ubuntu, without a container engine.
#   hack/release/debian.sh root IMAGE FOLDER   unpacks the packages of IMAGE into FOLDER: programs, libraries and licences
#   hack/release/debian.sh update              writes the newest versions of the suite into hack/release/debian-packages.txt
# DEBIAN_MIRROR and DEBIAN_SECURITY_MIRROR are URLs of archives; default: the mirrors of this machine.
set -euo pipefail
cd "$(dirname "$0")/../.."
. hack/env.sh
. hack/progress.sh

SUITE=bookworm ARCH=amd64
PINS=hack/release/debian-packages.txt
APT=$REPOT_CACHE/release/apt

# mirror_of PATTERN: the URL of the first archive of this machine that ends with PATTERN.
# shellcheck disable=SC2016 # apt-get replaces the name.
mirror_of() { apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null | grep -m 1 "$1/*\$" || true; }

# The index of the suite, beside the lists of this machine: the suite of this machine does not matter.
prepare_apt() {
  local mirror=${DEBIAN_MIRROR:-} security=${DEBIAN_SECURITY_MIRROR:-} keys=/usr/share/keyrings/debian-archive-keyring.gpg
  command -v apt-get >/dev/null || fail "packages are fetched by apt-get: run this on Debian or Ubuntu"
  hack/packages.sh debian-archive-keyring
  [ -n "$mirror" ] || mirror=$(mirror_of /debian)
  [ -n "$security" ] || security=$(mirror_of /debian-security)
  if [ -z "$mirror" ] || [ -z "$security" ]; then
    fail "this machine names no archive of Debian: set DEBIAN_MIRROR and DEBIAN_SECURITY_MIRROR to URLs of mirrors"
  fi
  mkdir -p "$APT"/lists/partial "$APT"/cache/archives/partial "$APT"/parts
  : >"$APT/status"
  printf "deb [arch=$ARCH signed-by=$keys] %s %s main\n" "$mirror" "$SUITE" "$mirror" "$SUITE-updates" \
    "$security" "$SUITE-security" >"$APT/sources.list"
  cat >"$APT/apt.conf" <<END
Dir::Etc::sourcelist "$APT/sources.list";
Dir::Etc::sourceparts "$APT/parts";
Dir::State::Lists "$APT/lists";
Dir::State::status "$APT/status";
Dir::Cache "$APT/cache";
APT::Architecture "$ARCH";
APT::Architectures {"$ARCH";};
APT::Sandbox::User "";
Acquire::Languages "none";
END
  export APT_CONFIG=$APT/apt.conf
  logged "$REPOT_CACHE/log/release-apt.log" timeout 300 apt-get update -q ||
    fail "the index of Debian $SUITE cannot be read; log: $REPOT_CACHE/log/release-apt.log"
}

# fetch PACKAGE VERSION SHA256: leaves the package in $APT/packages.
fetch() {
  local name=$1 version=$2 sum=$3 file
  file=$APT/packages/$sum.deb
  mkdir -p "$APT/packages"
  if ! [ -f "$file" ]; then
    [ -n "${APT_CONFIG:-}" ] || prepare_apt
    rm -rf "$APT/download" && mkdir "$APT/download"
    if ! (cd "$APT/download" && logged "$REPOT_CACHE/log/release-apt.log" timeout 300 apt-get download -q "$name=$version"); then
      apt-cache show "$name=$version" >/dev/null 2>&1 ||
        fail "Debian $SUITE has no $name $version any more: run hack/release/debian.sh update, and commit the new versions"
      fail "$name $version cannot be downloaded: run the command again; log: $REPOT_CACHE/log/release-apt.log"
    fi
    mv "$APT/download"/*.deb "$file.new" && mv "$file.new" "$file"
  fi
  [ "$(sha256sum "$file" | cut -d' ' -f1)" = "$sum" ] || {
    rm -f "$file"
    fail "$name $version differs from the checksum in $PINS: check the mirror, then run hack/release/debian.sh update"
  }
}

# The loader, libraries and programs of an image, and the licences of the packages. Left out: documentation, plug-ins of
# libc, and programs that the image does not start.
select_files() {
  local image=$1 root=$2 program programs others=()
  case $image in
    edge) programs="haproxy" ;;
    kube-proxy) programs="xtables-nft-multi conntrack" ;;
    *) fail "no image $image is made of Debian packages; there are: edge, kube-proxy" ;;
  esac
  for program in $programs; do
    [ -x "$root/usr/sbin/$program" ] || fail "the packages of image $image lack $program; compare $PINS"
    others+=(! -path "$root/usr/sbin/$program")
  done
  rm -rf "$root"/usr/lib/*/gconv "$root"/lib/*/gconv "$root"/usr/lib/*/audit "$root/usr/share/gdb"
  find "$root" \( -type f -o -type l \) ! -path '*/usr/share/doc/*/copyright' ! -name '*.so' ! -name '*.so.*' \
    "${others[@]}" -delete
  find "$root" -type d -empty -delete
}

unpack() {
  local image=$1 root=$2 name version sum images
  mkdir -p "$root"
  while read -r name version sum images; do
    case $name in '#'* | '') continue ;; esac
    case ",$images," in *",$image,"*) ;; *) continue ;; esac
    fetch "$name" "$version" "$sum"
    dpkg-deb -x "$APT/packages/$sum.deb" "$root"
  done <"$PINS"
  select_files "$image" "$root"
}

update() {
  local name version sum images entry
  prepare_apt
  while read -r name version sum images; do
    case $name in
      '#'*) echo "$name $version $sum $images" ;;
      *)
        entry=$(apt-cache show --no-all-versions "$name") || fail "Debian $SUITE has no package $name: correct $PINS"
        awk -v name="$name" -v images="$images" '$1 == "Version:" { version = $2 } $1 == "SHA256:" { sum = $2 }
          END { if (version == "" || sum == "") exit 1; print name, version, sum, images }' <<<"$entry" ||
          fail "Debian $SUITE has $name without a version or a checksum: correct $PINS"
        ;;
    esac
  done <"$PINS" >"$PINS.new"
  mv "$PINS.new" "$PINS"
  say "versions in $PINS are those of Debian $SUITE"
}

case ${1:-} in
  root) [ $# -eq 3 ] || fail "usage: hack/release/debian.sh root IMAGE FOLDER"; unpack "$2" "$3" ;;
  update) update ;;
  *) fail "usage: hack/release/debian.sh root IMAGE FOLDER | update" ;;
esac
