#![allow(clippy::unwrap_used)]

use std::{fs::write, time::Duration};

use permit::{Clock, Issuer};
use tempfile::TempDir;
use testkit::eventually;
use tokio::task::JoinSet;

use super::*;
use crate::gate::proxies;

/// Far longer than a busy machine takes to start a program.
const SOON: Duration = Duration::from_secs(60);

/// A shell that runs this script. The kernel starts no file that is open for writing, and a child that a
/// parallel test has just forked may have the script open.
fn program(folder: &TempDir, script: &str) -> Program {
    let path = folder.path().join("program");
    write(&path, format!("cd {}\n{script}\n", folder.path().display())).unwrap();
    write(folder.path().join("accessKeyID"), "AKIA-ONE\n").unwrap();
    write(folder.path().join("secretAccessKey"), "s3cret").unwrap();
    Program {
        path: "/bin/sh".into(),
        arguments: vec![path.display().to_string(), "--cluster-name=one".into()],
        credentials: folder.path().to_owned(),
        proxies: proxies("", ""),
    }
}

async fn content(folder: &TempDir, name: &str) -> String {
    let file = folder.path().join(name);
    eventually(name, SOON, || {
        let text = std::fs::read_to_string(&file)
            .ok()
            .filter(|text| text.ends_with('\n'));
        async move { text.ok_or("not written yet") }
    })
    .await
    .unwrap()
}

/// I3, R17-60: the program has no knowledge of the permit.
#[tokio::test]
async fn the_program_is_killed_when_the_permit_ends() {
    let folder = TempDir::new().unwrap();
    let program = program(
        &folder,
        "trap '' TERM\necho $$ >pid.new; mv pid.new pid\nwhile :; do sleep 1; done",
    );
    let clock = Clock::default();
    let until = clock.now() + Duration::from_secs(3600);
    let issuer = Issuer::new("a test", clock, until);
    let permit = issuer.permit();
    let mut running = JoinSet::new();
    running.spawn(async move { permit.guard(Box::pin(program.run(permit.clone()))).await });
    let pid = content(&folder, "pid").await;
    issuer.end("lost");
    assert!(running.join_next().await.unwrap().unwrap().is_err());
    let stat = format!("/proc/{}/stat", pid.trim());
    eventually("the program has ended", SOON, || {
        let is_running = std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "));
        async move { if is_running { Err("it runs") } else { Ok(()) } }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn the_account_is_in_the_environment_and_the_seeds_instance_is_not_asked() {
    let folder = TempDir::new().unwrap();
    let program = program(&folder, "(env; echo \"$@\") >all; exit 3");
    let ended = program.run(Permit::sole("a test")).await.unwrap_err();
    assert!(ended.contains("exit status: 3"), "{ended}");
    let all = content(&folder, "all").await;
    for line in [
        "AWS_ACCESS_KEY_ID=AKIA-ONE",
        "AWS_SECRET_ACCESS_KEY=s3cret",
        "AWS_EC2_METADATA_DISABLED=true",
        "--cluster-name=one",
    ] {
        assert!(all.lines().any(|other| other == line), "{line} in {all}");
    }
    assert!(all.contains("HTTPS_PROXY=http://127.0.0.1:"), "{all}");
    assert!(!all.contains("\nHOME="), "{all}");
    assert!(!all.contains("AWS_SESSION_TOKEN"), "{all}");
}

#[tokio::test]
async fn temporary_keys_are_passed_on_with_their_session_token() {
    for (token, expected) in [("t0ken\n", Some("AWS_SESSION_TOKEN=t0ken")), ("\n", None)] {
        let folder = TempDir::new().unwrap();
        let program = program(&folder, "env >all; exit 3");
        write(folder.path().join("sessionToken"), token).unwrap();
        program.run(Permit::sole("a test")).await.unwrap_err();
        let all = content(&folder, "all").await;
        let found = all.lines().find(|line| line.starts_with("AWS_SESSION_TOKEN"));
        assert_eq!(found, expected, "{all}");
    }
}

#[tokio::test]
async fn a_missing_key_is_named() {
    let folder = TempDir::new().unwrap();
    let program = program(&folder, "exit 0");
    std::fs::remove_file(folder.path().join("secretAccessKey")).unwrap();
    let why = program.run(Permit::sole("a test")).await.unwrap_err();
    assert!(why.contains("add the key secretAccessKey"), "{why}");
}
