use super::free_port;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use std::io::{IoSliceMut, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime};

/// Dates the bytes that a gate sends to its clients by the kernel's clock for received packets. On loopback
/// the kernel sets that date within the gate's own system call. So a test that stalls, and reads late, dates
/// no byte too late.
pub struct Stopwatch {
    pub endpoint: String,
    newest: Arc<Mutex<SystemTime>>,
}

impl Stopwatch {
    /// Stands between clients and the gate at this endpoint.
    pub fn before(gate: String) -> Self {
        let port = free_port();
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let newest = Arc::new(Mutex::new(SystemTime::UNIX_EPOCH));
        let dates = newest.clone();
        // Separate threads, because the runtime of a test may be busy. The threads end with the test's
        // process, or with their connection.
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(gate.trim_start_matches("http://")) else {
                    continue;
                };
                let dates = dates.clone();
                let (from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                thread::spawn(move || {
                    let _ = std::io::copy(&mut &from, &mut to);
                    let _ = to.shutdown(Shutdown::Write);
                });
                thread::spawn(move || {
                    carry(&server, &client, &dates);
                    let _ = client.shutdown(Shutdown::Both);
                });
            }
        });
        Self {
            endpoint: format!("http://127.0.0.1:{port}"),
            newest,
        }
    }

    /// When the newest byte left the gate.
    pub fn newest(&self) -> Arc<Mutex<SystemTime>> {
        self.newest.clone()
    }
}

/// The present time of the clock with which the kernel dates received bytes. All dates are of the same
/// machine.
#[allow(clippy::disallowed_methods)]
pub fn now() -> SystemTime {
    SystemTime::now()
}

fn carry(gate: &TcpStream, mut client: &TcpStream, newest: &Mutex<SystemTime>) {
    setsockopt(gate, sockopt::ReceiveTimestampns, &true).unwrap();
    let (mut bytes, mut messages) = (vec![0; 64 * 1024], nix::cmsg_space!(nix::sys::time::TimeSpec));
    loop {
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let read = recvmsg::<()>(
            gate.as_raw_fd(),
            &mut parts,
            Some(&mut messages),
            MsgFlags::empty(),
        );
        let Ok(read) = read else { return };
        let length = read.bytes;
        if length == 0 {
            return;
        }
        let date = read.cmsgs().unwrap().find_map(|message| match message {
            ControlMessageOwned::ScmTimestampns(date) => Some(Duration::from(date)),
            _ => None,
        });
        // The first bytes may have come before the kernel was asked for dates.
        let date = date.map_or_else(now, |date| SystemTime::UNIX_EPOCH + date);
        {
            let mut newest = newest.lock().unwrap_or_else(PoisonError::into_inner);
            *newest = date.max(*newest);
        }
        if client.write_all(&bytes[..length]).is_err() {
            return;
        }
    }
}
