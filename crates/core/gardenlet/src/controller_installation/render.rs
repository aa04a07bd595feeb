//! Renders charts with the template engine of helm, in a child process with bounds. The process gets a new
//! folder with an archive and a file of values, and no environment and no cluster. Time, memory and output
//! are limited. No content of a chart reaches a shell or the command line.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use runtime::{Error, Result};
use serde_json::Value;
use tokio::{
    fs,
    io::{AsyncRead, AsyncReadExt, copy, sink},
    process::{Child, Command},
    time::{sleep, timeout},
};

/// Longer than a large chart takes on a busy machine: some seconds.
const WITHIN: Duration = Duration::from_secs(60);
/// Maximum output of a chart. The Secret of the ManagedResource holds the complete output, and no Secret can
/// be larger.
pub(super) const MOST_OUTPUT: usize = 1_000_000;
/// Maximum length of a helm error message, in bytes.
const MOST_WORDS: usize = 1024;
/// Memory limit of helm, within the limit of the gardenlet container. An endless template would use all
/// memory, and the end of the container would stop all flows of the seed. A normal run needs some 60 MiB.
const MOST_MEMORY: u64 = 200 * 1024 * 1024;
/// Interval of the memory check: no watch exists for memory.
const LOOK: Duration = Duration::from_millis(20);
/// Size of a memory page in the statistics of the kernel, in bytes.
const PAGE: u64 = 4096;

/// Oldest supported Kubernetes version of a seed, for a Seed without a version in the status yet. The default
/// version of helm can be older than `kubeVersion` of a chart, and the chart would be refused.
const OLDEST: &str = "v1.30.0";

/// The input of helm.
#[derive(Clone, Copy, Debug)]
pub(super) struct Template<'a> {
    pub(super) archive: &'a [u8],
    pub(super) values: &'a Value,
    pub(super) release: &'a str,
    pub(super) namespace: &'a str,
    /// Kubernetes version of the seed; `None`: [`OLDEST`] counts.
    pub(super) kubernetes: Option<&'a str>,
}

/// Why the chart could not be rendered.
#[derive(Debug)]
pub(super) enum Failure {
    /// The chart or its values are wrong: a sentence for the condition `Valid`.
    Chart(String),
    /// The cause is in this process or its host, not in the chart.
    Here(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Here(error)
    }
}

/// Renders a chart with its CRDs. Hooks and tests are left out, since only an installation by helm would run
/// hooks and tests.
pub(super) async fn render(helm: &Path, template: &Template<'_>) -> Result<String, Failure> {
    let folder = tempfile::Builder::new().prefix("chart-").tempdir();
    let folder = folder.map_err(|error| here("no folder can be made for a chart", error))?;
    let (archive, values) = (folder.path().join("chart.tgz"), folder.path().join("values.json"));
    for (file, content) in [
        (&archive, template.archive),
        (&values, template.values.to_string().as_bytes()),
    ] {
        let written = fs::write(file, content).await;
        written.map_err(|error| here("a chart cannot be written", error))?;
    }
    let mut command = command(helm, folder.path(), template);
    command.arg(&archive).arg("--values").arg(&values);
    let child = command.spawn();
    let child = child.map_err(|error| here(&format!("{} cannot be started", helm.display()), error))?;
    match timeout(WITHIN, outcome(child)).await {
        Ok(outcome) => outcome,
        // The timeout drops the future, and the drop kills the process.
        Err(_) => Err(Failure::Chart(format!(
            "the chart was not rendered within {WITHIN:?}: look for a template that does not end"
        ))),
    }
}

fn command(helm: &Path, folder: &Path, template: &Template<'_>) -> Command {
    let mut command = Command::new(helm);
    command
        .env_clear()
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    for name in [
        "HOME",
        "TMPDIR",
        "HELM_CACHE_HOME",
        "HELM_CONFIG_HOME",
        "HELM_DATA_HOME",
    ] {
        command.env(name, folder);
    }
    command.args([
        "template",
        template.release,
        "--namespace",
        template.namespace,
        "--no-hooks",
        "--include-crds",
    ]);
    command.args(["--kube-version", template.kubernetes.unwrap_or(OLDEST)]);
    command
}

async fn outcome(mut child: Child) -> Result<String, Failure> {
    let said = (child.stdout.take(), child.stderr.take());
    let id = child.id();
    let (output, words) = tokio::select! {
        both = async { tokio::try_join!(output(said.0), words(said.1)) } => both?,
        used = too_much_memory(id) => return Err(Failure::Chart(format!(
            "the chart needs more than {} MiB of memory to be rendered ({used} MiB): look for a template that does not end",
            MOST_MEMORY >> 20
        ))),
    };
    let status = child.wait().await;
    let status = status.map_err(|error| here("helm was lost", error))?;
    if status.success() {
        return String::from_utf8(output)
            .map_err(|_| Failure::Chart("the chart renders something that is no text".to_owned()));
    }
    if status.code().is_none() {
        return Err(Failure::Here(Error::transient(format!(
            "helm was stopped ({status})"
        ))));
    }
    Err(Failure::Chart(format!(
        "helm cannot render the chart: {}",
        sentence(&words)
    )))
}

/// Reads the complete output, or fails if the output is too large.
async fn output(from: Option<impl AsyncRead + Unpin>) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        // A read error ends the output. The exit status of the process reports the cause.
        let _ = from.take(MOST_OUTPUT as u64 + 1).read_to_end(&mut bytes).await;
    }
    if bytes.len() > MOST_OUTPUT {
        return Err(Failure::Chart(format!(
            "the chart renders more than {MOST_OUTPUT} bytes: make two of it"
        )));
    }
    Ok(bytes)
}

/// Reads the beginning of the error output. The rest is discarded, so that the process does not block on a
/// full pipe.
async fn words(from: Option<impl AsyncRead + Unpin>) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    if let Some(mut from) = from {
        let _ = (&mut from).take(MOST_WORDS as u64).read_to_end(&mut bytes).await;
        let _ = copy(&mut from, &mut sink()).await;
    }
    Ok(bytes)
}

/// Returns as soon as the process uses more memory than allowed, with the memory in MiB.
async fn too_much_memory(process: Option<u32>) -> u64 {
    loop {
        if let Some(id) = process {
            let path = PathBuf::from(format!("/proc/{id}/statm"));
            let text = fs::read_to_string(path).await.unwrap_or_default();
            let resident = text
                .split_whitespace()
                .nth(1)
                .and_then(|pages| pages.parse::<u64>().ok());
            let used = resident.unwrap_or_default() * PAGE;
            if used > MOST_MEMORY {
                return used >> 20;
            }
        }
        sleep(LOOK).await;
    }
}

/// The error message of helm, as one line.
fn sentence(words: &[u8]) -> String {
    let text = String::from_utf8_lossy(words);
    let text: Vec<&str> = text.split_whitespace().collect();
    let text = text.join(" ");
    let text = text.trim_start_matches("Error: ").trim_end_matches('\u{fffd}');
    if text.is_empty() {
        "it gives no reason".to_owned()
    } else {
        text.to_owned()
    }
}

fn here(doing: &str, error: std::io::Error) -> Failure {
    Failure::Here(Error::transient(doing).caused_by(error))
}

#[cfg(test)]
#[path = "render_tests.rs"]
mod tests;
