#![allow(clippy::unwrap_used, clippy::panic)]

use std::process::Command;

use serde_json::{Value, json};

use super::*;

/// Plays helm: a program that does this.
async fn played(script: &str) -> Result<String, Failure> {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("helm");
    // A separate process writes the program. Otherwise a child of a parallel test could hold the file open
    // for writing, and the program could not be started.
    let write = r#"printf '#!/bin/sh\n%s\n' "$1" >"$0" && chmod 755 "$0""#;
    let mut shell = Command::new("/bin/sh");
    let written = shell.args(["-c", write]).arg(&program).arg(script).status();
    assert!(written.unwrap().success());
    let template = Template {
        archive: b"archive",
        values: &json!({"a": 1}),
        release: "r",
        namespace: "extension-r",
        kubernetes: Some("v1.34.4"),
    };
    render(&program, &template).await
}

async fn refused(script: &str) -> String {
    match played(script).await {
        Err(Failure::Chart(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn it_gets_an_archive_and_values_and_no_environment() {
    let text =
        played(r#"set -e; echo "$1 $2 $3 $4 $5 $6 $7 $8"; for last; do :; done; echo; pwd; /usr/bin/env"#)
            .await
            .unwrap();
    let mut lines = text.lines();
    assert_eq!(
        lines.next(),
        Some("template r --namespace extension-r --no-hooks --include-crds --kube-version v1.34.4")
    );
    let folder = text.lines().nth(2).unwrap();
    assert!(text.contains(&format!("HOME={folder}")), "{text}");
    assert!(!text.contains("CARGO") && !text.contains("RUST"), "{text}");
    assert!(!Path::new(folder).exists(), "nothing is left");
}

/// A template of an empty chart, for a seed without a version.
fn empty_template(values: &Value) -> Template<'_> {
    Template {
        archive: b"",
        values,
        release: "r",
        namespace: "n",
        kubernetes: None,
    }
}

#[test]
fn a_seed_without_a_version_counts_as_the_oldest_supported_version() {
    let values = json!({});
    let template = empty_template(&values);
    let command = command(Path::new("helm"), Path::new("/"), &template);
    let args: Vec<_> = command.as_std().get_args().collect();
    assert!(args.ends_with(&["--kube-version", OLDEST].map(std::ffi::OsStr::new)));
}

#[tokio::test]
async fn what_it_says_is_a_bounded_sentence() {
    assert_eq!(
        refused("echo 'Error: wrong\n  here' >&2; exit 1").await,
        "helm cannot render the chart: wrong here"
    );
    assert_eq!(
        refused("exit 1").await,
        "helm cannot render the chart: it gives no reason"
    );
    let long = refused("head -c 300000 /dev/zero | tr '\\0' x >&2; exit 1").await;
    assert!(long.len() < MOST_WORDS + 100, "{}", long.len());
}

#[tokio::test]
async fn what_never_ends_is_ended() {
    let why = refused("exec tr '\\0' x </dev/zero").await;
    assert!(why.contains("more than 1000000 bytes"), "{why}");
    // The process buffers its input, since the line never ends.
    let why = refused("exec sed n /dev/zero").await;
    assert!(why.contains("200 MiB of memory"), "{why}");
}

#[tokio::test]
async fn a_helm_that_is_not_there_is_not_the_charts_fault() {
    let values = json!({});
    let template = empty_template(&values);
    let failed = render(Path::new("/no/helm"), &template).await;
    assert!(matches!(failed, Err(Failure::Here(error)) if error.to_string().contains("/no/helm")));
    assert!(matches!(played("kill -9 $$").await, Err(Failure::Here(_))));
}
