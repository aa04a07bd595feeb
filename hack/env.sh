# shellcheck shell=bash
# Sourced by the Makefile's recipes and by every script in this folder: where things are kept and how they are built.
# A missing program is named before anything is built. With REPOT_REGISTRY, the demonstration builds nothing (hack/demo.sh).
for program in $([ -n "${REPOT_REGISTRY:-}" ] || echo rustc cargo go); do
  command -v "$program" >/dev/null || {
    echo "$program is not in PATH: install Rust 1.89 or newer (rustc, cargo) and Go 1.26 or newer (go)" >&2
    return 1
  }
done
unset program
# A C compiler with a static libc.
command -v cc >/dev/null || [ -n "${REPOT_REGISTRY:-}" ] || hack/packages.sh build-essential || return 1
# Caches live outside the repository; REPOT_CACHE moves them.
export REPOT_CACHE="${REPOT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/repot}"
export REPOT_BIN="$REPOT_CACHE/bin"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$REPOT_CACHE/target}"
# Binaries are static, so that an image is one file. That needs an explicit target: proc-macros stay dynamic.
CARGO_BUILD_TARGET="${CARGO_BUILD_TARGET:-$([ -n "${REPOT_REGISTRY:-}" ] || rustc -vV | sed -n 's/^host: //p')}"
export CARGO_BUILD_TARGET
export RUSTFLAGS="${RUSTFLAGS:--C target-feature=+crt-static}"
# A failed test ends with its message: the frames of an error would push the message out of a shortened log. Panics keep theirs.
export RUST_LIB_BACKTRACE="${RUST_LIB_BACKTRACE:-0}"
case ":$PATH:" in *":$REPOT_BIN:"*) ;; *) export PATH="$REPOT_BIN:$PATH" ;; esac
