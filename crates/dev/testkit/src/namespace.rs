//! Network namespaces: each namespace simulates a host with a separate network. Root is required.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU16, Ordering},
};

use anyhow::{Context, Result, anyhow, ensure};
use nix::sched::{CloneFlags, setns};
use tokio::runtime::Handle;

use crate::find_program;

/// Makes the names of this process's namespaces unique.
static NUMBER: AtomicU16 = AtomicU16::new(0);

/// A network namespace that forwards packets. Dropping the value deletes the namespace.
pub struct Namespace(String);

impl Namespace {
    /// A namespace without links.
    ///
    /// # Errors
    /// The process does not run as root, or `ip` refuses.
    pub fn new(name: &str) -> Result<Self> {
        ensure!(
            nix::unistd::geteuid().is_root(),
            "this test makes network namespaces: run it as root"
        );
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("{name}-{}-{number}", std::process::id());
        ip(&["netns", "add", &name])?;
        let made = Self(name);
        made.ip("link set lo up")?;
        made.within(|| std::fs::write("/proc/sys/net/ipv4/ip_forward", "1"))??;
        Ok(made)
    }

    /// The path by which a program enters the namespace.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        Path::new("/run/netns").join(&self.0)
    }

    /// Runs `ip` in the namespace, and returns the output.
    ///
    /// # Errors
    /// The error output of `ip`.
    pub fn ip(&self, arguments: &str) -> Result<String> {
        let own = ["-n", &self.0];
        ip(&own.into_iter().chain(arguments.split(' ')).collect::<Vec<_>>())
    }

    /// Runs `work` on a thread in the namespace.
    ///
    /// # Errors
    /// The namespace cannot be entered.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        let file = File::open(self.path())?;
        let runtime = Handle::try_current();
        std::thread::scope(|scope| {
            let thread = scope.spawn(move || {
                setns(file, CloneFlags::CLONE_NEWNET).context("the namespace cannot be entered")?;
                let _entered = runtime.as_ref().ok().map(Handle::enter);
                Ok(work())
            });
            thread.join().map_err(|_| anyhow!("a thread panicked"))?
        })
    }

    /// Adds a link with an address here to a second namespace with an address there.
    ///
    /// # Errors
    /// `ip` refuses.
    pub fn link(&self, here: (&str, &str), other: &Self, there: (&str, &str)) -> Result<()> {
        let of_other = format!("peer name {} netns {}", there.0, other.0);
        self.ip(&format!("link add {} type veth {of_other}", here.0))?;
        for (namespace, (device, address)) in [(self, here), (other, there)] {
            namespace.ip(&format!("link set dev {device} mtu 1400 up"))?;
            namespace.ip(&format!("address add {address} dev {device}"))?;
        }
        Ok(())
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = ip(&["netns", "delete", &self.0]);
    }
}

fn ip(arguments: &[&str]) -> Result<String> {
    let done = Command::new(find_program("ip")?).args(arguments).output()?;
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    ensure!(
        done.status.success(),
        "ip {}: {}",
        arguments.join(" "),
        text(&done.stderr)
    );
    Ok(text(&done.stdout))
}
