#!/usr/bin/env bash
# Everything that can be told without starting a server. All steps are run; it fails at the end if one failed.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/env.sh
. hack/progress.sh
refuse_registry

hack/packages.sh protobuf-compiler shellcheck python3-venv prometheus jq
failed=()
of_this_checkout

# step NAME COMMAND…
step() {
  local name=$1 begin=$SECONDS; shift
  say "check: $name"
  if "$@"; then say "check: $name: ok ($((SECONDS - begin)) s)"; else
    say "check: $name: FAILED ($((SECONDS - begin)) s)"
    failed+=("$name")
  fi
}

charts() {
  local chart found=0
  for chart in charts/*/Chart.yaml; do
    [ -e "$chart" ] || continue
    found=1
    hack/tools.sh helm || return 1
    helm lint --quiet --set global.imageRegistry=registry.example.org \
      --set global.kubernetesImageRegistry=registry.example.org "$(dirname "$chart")" || return 1
  done
  [ $found = 1 ] || say "check: no chart yet"
}

# Rules as Prometheus reads them, tests that make each alert fire, and names of metrics, labels and runbooks. Debian's package
# prometheus has promtool.
alerts() {
  promtool check rules charts/*/files/rules.yaml &&
    promtool test rules tests/alerts/*.yaml &&
    hack/xtask.sh alerts
}

# Licences, versions and sources of the crates (deny.toml). Only faults are shown; without -L there are warnings too.
dependencies() {
  hack/tools.sh cargo-deny || return 1
  cargo deny --locked -L error check --hide-inclusion-graph licenses bans sources
}

# The crates for third parties compile without any feature, and one command makes archives for the registry of all three. Compiling
# the archives again is left out: the lints have compiled the same files.
packages() {
  local crates=(-p repot-permit -p repot-lease -p leader-migration)
  say "check: packages: lints without features"
  cargo clippy --quiet "${crates[@]}" -- -D warnings || return 1
  say "check: packages: archives"
  cargo package --quiet "${crates[@]}" --locked --offline --no-verify --allow-dirty || {
    say "check: packages: cargo package failed for ${crates[*]}; each needs a description, a license and versions of all dependencies"
    return 1
  }
}

scripts() {
  local files
  mapfile -t files < <(git ls-files '*.sh' .ci/run)
  for file in "${files[@]}"; do bash -n "$file" || return 1; done
  if command -v shellcheck >/dev/null; then
    shellcheck -x -e SC1091 "${files[@]}"
  else
    say "check: shellcheck is not installed; scripts were only parsed"
  fi
}

step format cargo fmt --all --check
step lints cargo clippy --quiet --workspace --all-targets --all-features -- -D warnings
step layering hack/xtask.sh layering
step flows hack/xtask.sh flows
step language hack/xtask.sh language
step links hack/xtask.sh links
step rights hack/xtask.sh rights
step "generated files" hack/xtask.sh generate --check
step charts charts
step scan hack/scan.sh
step alerts alerts
step dependencies dependencies
step packages packages
step scripts scripts
[ ${#failed[@]} -eq 0 ] || fail "failed: $(IFS=,; echo "${failed[*]}")"
