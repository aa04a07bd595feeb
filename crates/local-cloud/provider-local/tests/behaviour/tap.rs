//! A proxy before a TCP server of any protocol: passes bytes on, counts the pieces that clients send, and
//! holds answers back.

use std::time::Duration;

use anyhow::{Context, Result};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};

/// The counts on a connection, and the limit for answers.
#[derive(Clone, Copy)]
struct State {
    /// Pieces that clients have sent. A request has at least one piece.
    said: usize,
    /// Clients that are connected.
    clients: usize,
    /// Pieces of answers that are held.
    held: usize,
    /// Answers are held while `said` is above this number.
    hold_after: usize,
}

/// A proxied server.
pub struct Tap {
    /// The address for clients.
    pub address: String,
    state: watch::Sender<State>,
    _lines: JoinSet<()>,
}

impl Tap {
    /// Starts a proxy for the server at this address.
    pub async fn new(server: &str) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let state = watch::Sender::new(State {
            said: 0,
            clients: 0,
            held: 0,
            hold_after: usize::MAX,
        });
        let (server, of_lines) = (server.to_owned(), state.clone());
        let mut lines = JoinSet::new();
        lines.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let (server, state) = (server.clone(), of_lines.clone());
                open.spawn(async move {
                    // The connection ends with either side.
                    let _ = line(client, &server, &state).await;
                });
            }
        });
        Ok(Self {
            address,
            state,
            _lines: lines,
        })
    }

    /// The number of pieces that clients have sent.
    pub fn count_sent(&self) -> usize {
        self.state.borrow().said
    }

    /// Passes answers to so many more pieces; later answers are held.
    pub fn hold_after(&self, answered: usize) {
        self.state
            .send_modify(|state| state.hold_after = state.said + answered);
    }

    /// Waits until an answer is held.
    pub async fn until_held(&self, limit: Duration) -> Result<()> {
        let mut state = self.state.subscribe();
        testkit::timeout(limit, state.wait_for(|state| state.held > 0))
            .await
            .context("no answer is held")??;
        Ok(())
    }

    /// Waits until no client is connected: after that, no bytes of a former client are held or arrive.
    pub async fn until_idle(&self, limit: Duration) -> Result<()> {
        let mut state = self.state.subscribe();
        testkit::timeout(limit, state.wait_for(|state| state.clients == 0))
            .await
            .context("a client stays connected")??;
        Ok(())
    }

    /// Releases all answers.
    pub fn release(&self) {
        self.state.send_modify(|state| state.hold_after = usize::MAX);
    }
}

async fn line(client: TcpStream, server: &str, state: &watch::Sender<State>) -> Result<()> {
    let _client = Counted::new(state, |state| &mut state.clients);
    let server = TcpStream::connect(server).await?;
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let asking = async {
        let mut piece = vec![0; 64 << 10];
        loop {
            let length = from_client.read(&mut piece).await?;
            if length == 0 {
                return anyhow::Ok(());
            }
            state.send_modify(|state| state.said += 1);
            to_server.write_all(&piece[..length]).await?;
        }
    };
    let answering = async {
        let mut piece = vec![0; 64 << 10];
        loop {
            let length = from_server.read(&mut piece).await?;
            if length == 0 {
                return anyhow::Ok(());
            }
            let mut seen = state.subscribe();
            let now = *seen.borrow_and_update();
            if now.said > now.hold_after {
                let _held = Counted::new(state, |state| &mut state.held);
                seen.wait_for(|state| state.said <= state.hold_after).await?;
            }
            to_client.write_all(&piece[..length]).await?;
        }
    };
    tokio::select! {
        ended = asking => ended,
        ended = answering => ended,
    }
}

/// Counts a thing during the lifetime of the value.
struct Counted<'a> {
    state: &'a watch::Sender<State>,
    what: fn(&mut State) -> &mut usize,
}

impl<'a> Counted<'a> {
    fn new(state: &'a watch::Sender<State>, what: fn(&mut State) -> &mut usize) -> Self {
        state.send_modify(|state| *what(state) += 1);
        Self { state, what }
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.state.send_modify(|state| *(self.what)(state) -= 1);
    }
}
