//! The file by which containerd connects pods: CNI plugins that are on every machine, with this machine's
//! range. A Node is ready as soon as the file exists, so the file is written when pods can be reached.

use std::{
    fs,
    io::{self, Write},
    path::Path,
};

use ipnet::Ipv4Net;
use serde_json::json;

/// Containerd takes the first file by name.
pub const FILE: &str = "00-network-local.conflist";
/// A name that containerd ignores.
const UNFINISHED: &str = ".00-network-local.unfinished";
/// Addresses in use, by pod. Gone after a restart of the machine, as the pods are.
const IN_USE: &str = "/run/network-local";

/// The content of the file. Pods keep their addresses among each other (`ipMasq` of the plugin would replace
/// the addresses); for outside targets, the agent masquerades.
#[must_use]
pub fn content(range: Ipv4Net, mtu: u32) -> String {
    let file = json!({
        // The newest version that both containerd 1.6 and the plugins of Debian 12 support for certain.
        "cniVersion": "0.4.0",
        "name": "network-local",
        "plugins": [
            {
                "type": "ptp",
                "ipMasq": false,
                "mtu": mtu,
                "ipam": {
                    "type": "host-local",
                    "dataDir": IN_USE,
                    "ranges": [[{"subnet": range.to_string()}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": true}},
        ],
    });
    format!("{file:#}\n")
}

/// Writes the file atomically if the content differs. Returns whether a write happened.
///
/// # Errors
/// The folder cannot be written.
pub fn write(folder: &Path, content: &str) -> io::Result<bool> {
    let file = folder.join(FILE);
    if fs::read_to_string(&file).is_ok_and(|there| there == content) {
        return Ok(false);
    }
    let unfinished = folder.join(UNFINISHED);
    let mut new = fs::File::create(&unfinished)?;
    new.write_all(content.as_bytes())?;
    new.sync_all()?;
    fs::rename(&unfinished, &file)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::Value;

    use super::*;

    #[test]
    fn pods_get_addresses_of_this_machine_and_keep_them() {
        let file: Value = serde_json::from_str(&content("10.0.1.0/24".parse().unwrap(), 1450)).unwrap();
        let ptp = &file["plugins"][0];
        assert_eq!(ptp["ipam"]["ranges"], json!([[{"subnet": "10.0.1.0/24"}]]));
        assert_eq!((&ptp["mtu"], &ptp["ipMasq"]), (&json!(1450), &json!(false)));
    }

    #[test]
    fn the_file_is_written_when_it_differs_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        assert!(write(path, "one").unwrap());
        assert!(!write(path, "one").unwrap());
        assert!(write(path, "two").unwrap());
        assert_eq!(fs::read_to_string(path.join(FILE)).unwrap(), "two");
        assert_eq!(fs::read_dir(path).unwrap().count(), 1);
        let missing = write(&path.join("missing"), "x").unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}
