//! SIGTERM to etcd through the shared process namespace (R17-41, R17-42).

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const PROGRAM: &str = "etcd";

/// Identifies the etcd process.
#[derive(Clone, Debug)]
pub(super) struct EtcdProcess {
    pub(super) data_dir: PathBuf,
    /// Address on which etcd listens.
    pub(super) target: SocketAddr,
}

impl EtcdProcess {
    /// Sends SIGTERM; returns the process id. Processes of other users, and other etcds, are not signalled.
    pub(super) fn terminate(&self) -> Result<i32, String> {
        let processes = fs::read_dir("/proc").map_err(|e| format!("cannot read /proc: {e}"))?;
        let mut refused = None;
        for entry in processes.flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            if !self.is_meant(&entry.path()) {
                continue;
            }
            match kill(Pid::from_raw(pid), Signal::SIGTERM) {
                Ok(()) => return Ok(pid),
                Err(error) => refused = Some(format!("process {pid} cannot be told: {error}")),
            }
        }
        Err(refused.unwrap_or_else(|| {
            format!(
                "no process of etcd with the data directory {} was found; does the pod share its process namespace?",
                self.data_dir.display()
            )
        }))
    }

    fn is_meant(&self, process: &Path) -> bool {
        let owner = |path: &Path| fs::metadata(path).map(|found| found.uid()).ok();
        let is_ours = owner(process).is_some() && owner(process) == owner(Path::new("/proc/self"));
        // The link cannot be read where capabilities differ, the name always.
        let program = match fs::read_link(process.join("exe")) {
            Ok(path) => path.file_name().map(|name| name.to_string_lossy().into_owned()),
            Err(_) => fs::read_to_string(process.join("comm"))
                .ok()
                .map(|name| name.trim_end().to_owned()),
        };
        let Ok(command) = fs::read(process.join("cmdline")) else {
            return false;
        };
        is_ours && program.as_deref() == Some(PROGRAM) && self.names(&command)
    }

    /// Whether a command line, as the kernel reports it, names the data directory or the address.
    fn names(&self, command: &[u8]) -> bool {
        let words: Vec<_> = command
            .split(|byte| *byte == 0)
            .map(String::from_utf8_lossy)
            .collect();
        let value = |flag: &str| {
            words.iter().enumerate().find_map(|(number, word)| {
                let word = word.trim_start_matches('-');
                match word.split_once('=') {
                    Some((name, value)) => (name == flag).then(|| value.to_owned()),
                    None => (word == flag).then(|| words.get(number + 1).map(ToString::to_string))?,
                }
            })
        };
        let is_address = |url: &str| url.rsplit('/').next() == Some(&self.target.to_string());
        match value("data-dir") {
            Some(found) => Path::new(&found) == self.data_dir,
            None => value("listen-client-urls").is_some_and(|urls| urls.split(',').any(is_address)),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn etcd() -> EtcdProcess {
        EtcdProcess {
            data_dir: "/var/etcd/data/new.etcd".into(),
            target: "127.0.0.1:2382".parse().unwrap(),
        }
    }

    #[test]
    fn an_etcd_is_told_by_its_data_directory_or_its_address() {
        for command in [
            "etcd\0--name=a\0--data-dir=/var/etcd/data/new.etcd\0",
            "/usr/local/bin/etcd\0-data-dir\0/var/etcd/data/new.etcd\0",
            "etcd\0--data-dir=/var/etcd/data/new.etcd/\0",
            "etcd\0--listen-client-urls=https://127.0.0.1:2382\0",
            "etcd\0--listen-client-urls\0https://[::1]:2379,https://127.0.0.1:2382\0",
        ] {
            assert!(etcd().names(command.as_bytes()), "{command:?}");
        }
        for command in [
            "",
            "\0\0",
            "etcd\0--data-dir",
            "etcd\0--data-dir\0",
            "etcd\0--data-dir=/var/etcd/data/other\0--listen-client-urls=https://127.0.0.1:2382\0",
            "etcd\0--data-dir=/var/etcd/data/new.etcd.restoring\0",
            "etcd\0--listen-client-urls=https://127.0.0.1:23820\0",
            "etcd\0--initial-cluster=a=/var/etcd/data/new.etcd\0",
        ] {
            assert!(!etcd().names(command.as_bytes()), "{command:?}");
        }
    }

    #[test]
    fn where_there_is_none_it_is_told() {
        let none = EtcdProcess {
            data_dir: "/nowhere/at/all".into(),
            target: "127.0.0.1:1".parse().unwrap(),
        };
        let told = none.terminate().unwrap_err();
        assert!(told.contains("no process of etcd"), "{told}");
    }
}
