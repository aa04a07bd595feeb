use super::{free_port, program};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// An S3 protocol server that keeps objects as files.
pub struct S3Server {
    process: Child,
    port: u16,
    pub folder: PathBuf,
    pub endpoint: String,
}

impl S3Server {
    pub fn start(folder: &Path) -> Self {
        std::fs::create_dir_all(folder).unwrap();
        let port = free_port();
        Self {
            process: spawn(folder, port),
            port,
            folder: folder.to_owned(),
            endpoint: format!("http://127.0.0.1:{port}"),
        }
    }

    /// Kills the server; its data stay.
    pub fn stop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Stops the server from answering: clients get neither an answer nor a refusal.
    pub fn hang(&self) {
        let pid = self.process.id().to_string();
        let sent = Command::new("kill").args(["-STOP", &pid]).status().unwrap();
        assert!(sent.success());
    }

    /// Restarts the server at the same address.
    pub fn resume(&mut self) {
        self.process = spawn(&self.folder, self.port);
    }

    pub fn create_bucket(&self, name: &str) {
        std::fs::create_dir_all(self.folder.join(name)).unwrap();
    }

    /// Writes the files of a mounted Secret.
    pub fn write_credentials(&self, folder: &Path) {
        Self::write_credentials_of(&self.endpoint, folder);
    }

    /// Writes a mounted Secret for a server at a different address.
    pub fn write_credentials_of(endpoint: &str, folder: &Path) {
        std::fs::create_dir_all(folder).unwrap();
        let files = [
            ("accessKeyID", "writer"),
            ("secretAccessKey", "open-sesame"),
            ("region", "eu-west-1"),
            ("endpoint", endpoint),
        ];
        for (name, content) in files {
            std::fs::write(folder.join(name), content).unwrap();
        }
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        self.stop();
    }
}

#[allow(clippy::disallowed_methods)] // it takes no time, and nobody else needs the thread
fn spawn(folder: &Path, port: u16) -> Child {
    let process = Command::new(program("s3s-fs"))
        .args([
            "--host",
            "127.0.0.1",
            "--access-key",
            "writer",
            "--secret-key",
            "open-sesame",
        ])
        .args(["--port", &port.to_string()])
        .arg(folder)
        .env("RUST_LOG", "error")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let (begun, bound) = (
        Instant::now(),
        testkit::WaitBound::new("s3s-fs listens", super::PATIENCE),
    );
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(begun.elapsed() < super::PATIENCE, "s3s-fs does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }
    bound.report(begun.elapsed());
    process
}
