//! The program runs for the seed that owns the shoot (R17-60..62). The process and the name server are real.
//! The program is a script, and the process beside etcd is silent.
#![allow(clippy::unwrap_used)]

use std::{fs, os::unix::fs::PermissionsExt, path::Path, time::Duration};

use anyhow::{Context as _, Result, ensure};
use testkit::{OwnerRecord, Server, eventually};

/// Longer than an answer is valid, on a busy machine.
const SOON: Duration = Duration::from_secs(60);
/// Writes the process ID, and ends by SIGKILL alone.
const SCRIPT: &str = "#!/bin/sh\ntrap '' TERM\ncd \"$(dirname \"$0\")\"\necho $$ >new && mv new pid\nwhile :; do sleep 1; done\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_program_runs_while_the_record_names_this_seed() -> Result<()> {
    let (folder, record) = (tempfile::tempdir()?, OwnerRecord::start().await?);
    let program = folder.path().join("program");
    fs::write(&program, SCRIPT)?;
    fs::set_permissions(&program, PermissionsExt::from_mode(0o755))?;
    for key in ["accessKeyID", "secretAccessKey"] {
        fs::write(folder.path().join(key), "x")?;
    }
    let mut arguments = vec![
        format!("--program={}", program.display()),
        format!("--cloud-credentials={}", folder.path().display()),
        "--health-address=127.0.0.1:0".to_owned(),
    ];
    arguments.extend(record.flags("seed-a", 3));
    let binary = env!("CARGO_BIN_EXE_cloud-controller-manager-aws");
    let mut process = Server::start(
        "cloud-controller-manager-aws",
        binary,
        folder.path(),
        arguments,
        &[],
    )?;
    let pid = folder.path().join("pid");
    // The absence of a process can only be checked after a wait.
    tokio::time::sleep(OwnerRecord::OUTLASTS_AN_ANSWER).await;
    ensure!(
        !pid.exists(),
        "the program runs although the record names no seed"
    );
    record.says("seed-a", 3).await?;
    let started = eventually("the program runs", SOON, || async {
        fs::read_to_string(&pid).map(|text| text.trim().to_owned())
    });
    let started = started.await.with_context(|| process.log_tail())?;
    ensure!(is_running(&started), "the program has ended");

    record.says("seed-b", 4).await?;
    let ended = eventually("the program is killed", SOON, || {
        let is_running = is_running(&started);
        async move { if is_running { Err("it runs") } else { Ok(()) } }
    });
    ended.await.with_context(|| process.log_tail())?;
    process.check_alive()?;
    Ok(())
}

fn is_running(pid: &str) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(pid).join("stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}
