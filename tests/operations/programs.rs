//! Helm and kubectl as processes, with a separate home folder: caches of one test's server must not be used
//! for a second server.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::Value;
use tempfile::TempDir;
use testkit::find_program;
use tokio::process::Command;

/// Longer than Helm waits for a Deployment on a busy machine.
const ENDS_WITHIN: Duration = Duration::from_secs(300);

/// Settings that every chart needs.
pub const REGISTRIES: [&str; 2] = [
    "--set",
    "global.imageRegistry=registry.example.org,global.kubernetesImageRegistry=registry.example.org",
];

/// The Kubernetes version for `helm template`: the command reads no version from a cluster.
pub const KUBERNETES: [&str; 2] = ["--kube-version", "1.34.0"];

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The output of a program.
#[derive(Debug)]
pub struct ProgramOutput {
    pub success: bool,
    pub out: String,
    pub err: String,
}

impl ProgramOutput {
    /// The content of stdout; an error after a failure.
    pub fn or_fail(self, what: &str) -> Result<String> {
        if !self.success {
            bail!("{what}: {}{}", self.out, self.err);
        }
        Ok(self.out)
    }
}

/// The place for runs of programs: a folder with the charts and pages of the repository, and an optional
/// cluster.
pub struct Desk {
    folder: TempDir,
    kubeconfig: Option<PathBuf>,
}

impl Desk {
    /// A desk without a cluster.
    pub fn new() -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("repot-desk-").tempdir()?;
        for name in ["charts", "docs"] {
            std::os::unix::fs::symlink(root().join(name).canonicalize()?, folder.path().join(name))?;
        }
        Ok(Self {
            folder,
            kubeconfig: None,
        })
    }

    /// A desk with a cluster.
    pub fn at(kubeconfig: PathBuf) -> Result<Self> {
        Ok(Self {
            kubeconfig: Some(kubeconfig),
            ..Self::new()?
        })
    }

    /// Puts a file there.
    pub fn write(&self, name: &str, content: &str) -> Result<()> {
        std::fs::write(self.folder.path().join(name), content).with_context(|| name.to_owned())
    }

    /// A command that is ready to be started. Its environment has the variables of the pages: the seeds of
    /// the documented move, and the seed that is installed.
    pub fn command(&self, program: &str, args: &[&str]) -> Result<Command> {
        let tools = find_program("helm")?;
        let tools = tools.parent().context("helm lies in no folder")?;
        let path = format!(
            "{}:{}",
            tools.display(),
            std::env::var("PATH").unwrap_or_default()
        );
        let mut command = match program {
            "helm" | "kubectl" => Command::new(find_program(program)?),
            other => Command::new(other),
        };
        command
            .args(args)
            .current_dir(self.folder.path())
            .env("HOME", self.folder.path())
            .env("KUBECACHEDIR", self.folder.path().join("cache"))
            .env("PATH", path)
            .envs([("seed", "seed-a"), ("from", "seed-a"), ("to", "seed-b")])
            .env("user", "gardener.cloud:system:seed:seed-a")
            .envs([
                ("values", "docs/operate/examples"),
                ("charts", "charts"),
                ("chart_options", ""),
            ])
            .stdin(Stdio::null())
            .kill_on_drop(true);
        match &self.kubeconfig {
            Some(file) => command.env("KUBECONFIG", file).env("GARDEN_KUBECONFIG", file),
            None => command.env_remove("KUBECONFIG"),
        };
        Ok(command)
    }

    /// Runs a program to the end.
    pub async fn run(&self, program: &str, args: &[&str]) -> Result<ProgramOutput> {
        let ended = testkit::timeout(ENDS_WITHIN, self.command(program, args)?.output())
            .await
            .with_context(|| format!("{program} {args:?} does not end"))??;
        Ok(ProgramOutput {
            success: ended.status.success(),
            out: String::from_utf8_lossy(&ended.stdout).into_owned(),
            err: String::from_utf8_lossy(&ended.stderr).into_owned(),
        })
    }

    /// Renders a chart, with registries and these further arguments.
    pub async fn template(&self, chart: &str, args: &[&str]) -> Result<ProgramOutput> {
        self.template_exactly(chart, &[&REGISTRIES[..], args].concat())
            .await
    }

    /// Renders a chart, with these arguments alone.
    pub async fn template_exactly(&self, chart: &str, args: &[&str]) -> Result<ProgramOutput> {
        let path = format!("charts/{chart}");
        let template = ["template", "release", path.as_str(), "-n", "garden"];
        self.run("helm", &[&template[..], &KUBERNETES[..], args].concat())
            .await
    }

    /// The rendered objects of a chart.
    pub async fn rendered(&self, chart: &str, args: &[&str]) -> Result<Vec<Value>> {
        documents(&self.template(chart, args).await?.or_fail(chart)?)
    }

    /// The rendered objects of a chart, with these arguments alone.
    pub async fn rendered_exactly(&self, chart: &str, args: &[&str]) -> Result<Vec<Value>> {
        documents(&self.template_exactly(chart, args).await?.or_fail(chart)?)
    }
}

/// All documents of a file, without empty documents.
pub fn documents(text: &str) -> Result<Vec<Value>> {
    let mut found = Vec::new();
    for document in serde_yaml_ng::Deserializer::from_str(text) {
        let value = Value::deserialize(document)?;
        if !value.is_null() {
            found.push(value);
        }
    }
    Ok(found)
}

/// Every chart, by folder name.
pub fn charts() -> Vec<String> {
    let folders = std::fs::read_dir(root().join("charts")).unwrap();
    let mut names: Vec<String> = folders
        .map(|folder| folder.unwrap())
        .filter(|folder| folder.path().join("Chart.yaml").is_file())
        .map(|folder| folder.file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert!(names.len() >= 6, "{names:?}");
    names
}
