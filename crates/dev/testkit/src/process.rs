//! A server process that cannot outlive the test.
//!
//! Dropping the value kills the process. If the test process is killed, the kernel kills the server:
//! `setpriv --pdeathsig` requests that. The kernel watches the parent *thread*, and test threads are
//! short-lived. Hence a single thread starts all processes, and lives as long as the test process.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, OnceLock};

use anyhow::{Context, Result, anyhow, bail};

use crate::programs;

/// If this variable is set, no server is started; the value is the reason.
const NO_SERVERS: &str = "REPOT_NO_SERVERS";

type Request = (Command, Sender<io::Result<Child>>);

static STARTER: OnceLock<Mutex<Sender<Request>>> = OnceLock::new();

fn start(command: Command) -> Result<Child> {
    let starter = STARTER.get_or_init(|| {
        let (requests, inbox) = channel::<Request>();
        std::thread::spawn(move || {
            for (mut command, reply) in inbox {
                let _ = reply.send(command.spawn());
            }
        });
        Mutex::new(requests)
    });
    let (reply, answer) = channel();
    starter
        .lock()
        .map_err(|_| anyhow!("the thread that starts processes is broken"))?
        .send((command, reply))?;
    Ok(answer.recv()??)
}

/// A running process.
#[derive(Debug)]
pub struct Server {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Server {
    /// Starts `program` (see [`crate::find_program`]) with the output in `<folder>/<name>.log`, or in a file
    /// of that name in `$REPOT_TEST_LOGS`.
    pub fn start<A: AsRef<OsStr>>(
        name: &str,
        program: &str,
        folder: &Path,
        args: impl IntoIterator<Item = A>,
        env: &[(&str, &str)],
    ) -> Result<Self> {
        if let Ok(why) = std::env::var(NO_SERVERS) {
            bail!("{name} is not started: {why}");
        }
        let program = programs::find(program)?;
        let log = match std::env::var_os("REPOT_TEST_LOGS") {
            Some(kept) => {
                fs::create_dir_all(&kept)?;
                Path::new(&kept).join(format!("{name}-{}.log", std::process::id()))
            }
            None => folder.join(format!("{name}.log")),
        };
        let output = File::options()
            .create(true)
            .append(true)
            .open(&log)
            .with_context(|| log.display().to_string())?;
        let mut command = Command::new(programs::find("setpriv")?);
        command
            .args(["--pdeathsig", "KILL", "--"])
            .arg(&program)
            .args(args)
            .envs(env.iter().copied())
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output);
        let child = start(command).with_context(|| format!("could not start {}", program.display()))?;
        Ok(Self {
            name: name.to_owned(),
            child,
            log,
        })
    }

    /// Fails with the end of the log if the process has ended.
    pub fn check_alive(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!(
                "{} ended ({status}); the end of its log:\n{}",
                self.name,
                self.log_tail()
            ),
        }
    }

    /// The last lines of the log.
    #[must_use]
    pub fn log_tail(&self) -> String {
        let text = fs::read(&self.log)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }

    /// The path of the log.
    #[must_use]
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// The process id, e.g. to send SIGSTOP.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Anonymous and total resident memory of the process, in KiB.
    ///
    /// # Errors
    /// The process has ended.
    pub fn memory(&self) -> Result<[u64; 2]> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id()))?;
        let field = |name: &str| -> Result<u64> {
            let line = status
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .with_context(|| format!("no {name}"))?;
            Ok(line.trim().trim_end_matches(" kB").parse()?)
        };
        Ok([field("RssAnon:")?, field("VmRSS:")?])
    }

    /// The CPU time of the process until now.
    ///
    /// # Errors
    /// The process has ended.
    pub fn cpu(&self) -> Result<std::time::Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.id()))?;
        let (_, fields) = stat.rsplit_once(')').context("no name in stat")?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let ticks = |at: usize| -> Result<u64> { Ok(fields.get(at).context("no time in stat")?.parse()?) };
        // In hundredths of a second, on every Linux.
        Ok(std::time::Duration::from_millis(10 * (ticks(11)? + ticks(12)?)))
    }

    /// The number of open files and connections.
    ///
    /// # Errors
    /// The process has ended.
    pub fn open_files(&self) -> Result<usize> {
        Ok(std::fs::read_dir(format!("/proc/{}/fd", self.id()))?.count())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
