//! A fake etcd-backup-restore that knows the lists of the certificates of preparations, and no further
//! request.

use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use anyhow::Result;
use serde_json::{Value, json};

/// The begin of a request with a list.
const LIST: &str = "PUT /gate/prepared-clients ";

/// Confirms each list, and keeps the newest list.
#[derive(Clone, Debug, Default)]
pub struct FakeGate {
    is_former: Arc<AtomicBool>,
    newest: Arc<Mutex<Option<Value>>>,
}

impl FakeGate {
    /// Starts to serve, until the process ends. Returns the URL.
    ///
    /// # Errors
    /// No port is free.
    pub fn start(&self) -> Result<String> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}", listener.local_addr()?);
        let gate = self.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that has gone needs no answer.
                gate.answer(&stream).ok();
            }
        });
        Ok(url)
    }

    /// Whether the process is of a former version, and knows no lists.
    pub fn set_former(&self, is_former: bool) {
        self.is_former.store(is_former, Ordering::SeqCst);
    }

    /// The serial numbers of the newest list.
    #[must_use]
    pub fn serials(&self) -> Option<Vec<String>> {
        let newest = self.newest();
        let clients = newest.as_ref()?["clients"].as_array()?;
        let serials = clients.iter().filter_map(|client| client["serial"].as_str());
        Some(serials.map(str::to_owned).collect())
    }

    fn newest(&self) -> MutexGuard<'_, Option<Value>> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, mut stream: &TcpStream) -> io::Result<()> {
        let mut reader = BufReader::new(stream);
        let mut first = String::new();
        reader.read_line(&mut first)?;
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().unwrap_or_default();
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let (status, answer) = if !first.starts_with(LIST) || self.is_former.load(Ordering::SeqCst) {
            ("404 Not Found", String::new())
        } else {
            let list: Value = serde_json::from_slice(&body)?;
            let admitted = list["clients"].as_array().map_or(0, Vec::len);
            let answer = json!({"epoch": list["epoch"], "admitted": admitted});
            *self.newest() = Some(list);
            ("200 OK", answer.to_string())
        };
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n", answer.len());
        stream.write_all(format!("{head}Connection: close\r\n\r\n{answer}").as_bytes())
    }
}
