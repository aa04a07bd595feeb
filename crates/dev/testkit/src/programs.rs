//! Finds the programs that tests start.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

/// Finds a program: in `$KUBEBUILDER_ASSETS`, in `$REPOT_BIN`, in the cache folder that `hack/env.sh` names,
/// in `PATH` and in the folders of system daemons. A missing program is an error with instructions for the
/// installation.
pub fn find(name: &str) -> Result<PathBuf> {
    let cache = env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| env::var_os("HOME").map(|home| Path::new(&home).join(".cache")))
        .map(|cache| cache.join("repot/bin"));
    let places = [env::var_os("KUBEBUILDER_ASSETS"), env::var_os("REPOT_BIN")]
        .into_iter()
        .flatten()
        .map(PathBuf::from);
    let path: Vec<PathBuf> = env::var_os("PATH")
        .map(|p| env::split_paths(&p).collect())
        .unwrap_or_default();
    let system = ["/usr/local/sbin", "/usr/sbin"].map(PathBuf::from);
    for folder in places.chain(cache).chain(path).chain(system) {
        let file = folder.join(name);
        if file.is_file() {
            return Ok(file);
        }
    }
    bail!("{name} was not found; {}", advice(name))
}

/// How to get a program.
fn advice(name: &str) -> String {
    match name {
        "knotd" => "install it with `hack/packages.sh knot` (Debian package knot)".to_owned(),
        "ip" => "install it with `hack/packages.sh iproute2`".to_owned(),
        "setpriv" => "install it with `hack/packages.sh util-linux`".to_owned(),
        _ => format!("build it with `hack/tools.sh {name}`, or all with `make tools`"),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_missing_program_says_how_to_get_it() {
        let error = super::find("no-such-program").err().map(|e| e.to_string());
        assert_eq!(
            error.as_deref(),
            Some(
                "no-such-program was not found; build it with `hack/tools.sh no-such-program`, or all with `make tools`"
            )
        );
    }
}
