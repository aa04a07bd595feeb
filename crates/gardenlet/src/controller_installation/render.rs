//! helm's own template engine, as a child process: it gets a folder of its own, an archive and a file of
//! values, no environment, no cluster, so much time, so much memory and so much to say. Nothing of a chart is
//! given to a shell, nor to the command line.

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
/// What a chart may render. A Secret of the ManagedResource holds all of it, and no Secret is larger.
pub(super) const MOST_OUTPUT: usize = 1_000_000;
/// Of what helm says is wrong.
const MOST_WORDS: usize = 1024;
/// What helm may use, which is part of what the gardenlet's container may: a template that never ends takes
/// all there is, and with the container go all flows of the seed. helm itself takes some 60 MiB.
const MOST_MEMORY: u64 = 200 * 1024 * 1024;
/// How often that is looked at: memory cannot be watched.
const LOOK: Duration = Duration::from_millis(20);
/// Of a page of memory, as the kernel counts.
const PAGE: u64 = 4096;

/// What is rendered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Template<'a> {
    pub(super) archive: &'a [u8],
    pub(super) values: &'a Value,
    pub(super) release: &'a str,
    pub(super) namespace: &'a str,
    /// Of the seed; helm's own default where it is not known.
    pub(super) kubernetes: Option<&'a str>,
}

/// Why nothing was rendered.
#[derive(Debug)]
pub(super) enum Failure {
    /// The chart or its values are wrong: a sentence for the condition `Valid`.
    Chart(String),
    /// It is not the chart's fault.
    Here(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Here(error)
    }
}

/// Renders a chart; without hooks and tests, which only an installation by helm would run, and with its
/// definitions of kinds.
pub(super) async fn render(helm: &Path, template: &Template<'_>) -> Result<String, Failure> {
    let folder = tempfile::Builder::new().prefix("chart-").tempdir();
    let folder = folder.map_err(|error| here("no folder can be made for a chart", &error))?;
    let (archive, values) = (folder.path().join("chart.tgz"), folder.path().join("values.json"));
    for (file, content) in [
        (&archive, template.archive),
        (&values, template.values.to_string().as_bytes()),
    ] {
        let written = fs::write(file, content).await;
        written.map_err(|error| here("a chart cannot be written", &error))?;
    }
    let mut command = command(helm, folder.path(), template);
    command.arg(&archive).arg("--values").arg(&values);
    let child = command.spawn();
    let child = child.map_err(|error| here(&format!("{} cannot be started", helm.display()), &error))?;
    match timeout(WITHIN, outcome(child)).await {
        Ok(outcome) => outcome,
        // Dropped, it is killed.
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
    if let Some(version) = template.kubernetes {
        command.args(["--kube-version", version]);
    }
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
    let status = status.map_err(|error| here("helm was lost", &error))?;
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

/// All that it writes, unless that is too much.
async fn output(from: Option<impl AsyncRead + Unpin>) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        // What cannot be read ends what is read: how the process ended tells the rest.
        let _ = from.take(MOST_OUTPUT as u64 + 1).read_to_end(&mut bytes).await;
    }
    if bytes.len() > MOST_OUTPUT {
        return Err(Failure::Chart(format!(
            "the chart renders more than {MOST_OUTPUT} bytes: make two of it"
        )));
    }
    Ok(bytes)
}

/// The beginning of what it says; the rest is read and forgotten, so that it can go on.
async fn words(from: Option<impl AsyncRead + Unpin>) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    if let Some(mut from) = from {
        let _ = (&mut from).take(MOST_WORDS as u64).read_to_end(&mut bytes).await;
        let _ = copy(&mut from, &mut sink()).await;
    }
    Ok(bytes)
}

/// Ends when the process uses too much: so many MiB.
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

/// What helm said, as one line.
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

fn here(doing: &str, error: &std::io::Error) -> Failure {
    Failure::Here(Error::transient(format!("{doing}: {error}")))
}

#[cfg(test)]
#[path = "render_tests.rs"]
mod tests;
