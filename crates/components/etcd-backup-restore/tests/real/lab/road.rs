use super::eventually;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, UdpSocket};
use tokio::task::JoinSet;

/// Longer than a name server takes to answer; every client has given up before.
const ANSWERED_WITHIN: Duration = Duration::from_secs(5);

/// A path to a name server that can be cut: packets are then lost without an error. A second path still leads
/// to the server, so that its record can be changed meanwhile.
pub struct Road {
    /// The server's address on this path.
    pub address: String,
    is_cut: Arc<AtomicBool>,
    _questions: JoinSet<()>,
    /// Accepts TCP connections and never answers.
    _silent: TcpListener,
}

impl Road {
    pub async fn to(server: &str) -> Self {
        let (socket, silent) = eventually("one port is free for both", async || {
            let silent = TcpListener::bind("127.0.0.1:0").await.ok()?;
            let socket = UdpSocket::bind(silent.local_addr().ok()?).await.ok()?;
            Some((Arc::new(socket), silent))
        })
        .await;
        let address = socket.local_addr().unwrap();
        let is_cut = Arc::<AtomicBool>::default();
        let (server, cut) = (server.to_owned(), is_cut.clone());
        let mut questions = JoinSet::new();
        questions.spawn(async move {
            let mut under_way = JoinSet::new();
            let mut buffer = [0; 4096];
            loop {
                let (length, from) = socket.recv_from(&mut buffer).await.unwrap();
                if cut.load(Ordering::SeqCst) {
                    continue;
                }
                let (question, server, socket) = (buffer[..length].to_vec(), server.clone(), socket.clone());
                let cut = cut.clone();
                under_way.spawn(async move {
                    let asked = tokio::time::timeout(ANSWERED_WITHIN, ask(&server, &question)).await;
                    // Or the answer is lost on the return path.
                    if let Ok(Ok(answer)) = asked
                        && !cut.load(Ordering::SeqCst)
                    {
                        socket.send_to(&answer, from).await.unwrap();
                    }
                });
            }
        });
        Self {
            address: address.to_string(),
            is_cut,
            _questions: questions,
            _silent: silent,
        }
    }

    pub fn cut(&self) {
        self.is_cut.store(true, Ordering::SeqCst);
    }

    pub fn mend(&self) {
        self.is_cut.store(false, Ordering::SeqCst);
    }
}

async fn ask(server: &str, question: &[u8]) -> std::io::Result<Vec<u8>> {
    let socket = UdpSocket::bind("127.0.0.1:0").await?;
    socket.connect(server).await?;
    socket.send(question).await?;
    let mut answer = vec![0; 4096];
    let length = socket.recv(&mut answer).await?;
    answer.truncate(length);
    Ok(answer)
}
