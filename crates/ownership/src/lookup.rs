//! Asks the authorities: each of them both questions over one flow, twice if need be.

use std::net::SocketAddr;
use std::time::Duration;

use futures::future::{Either, join, join_all, select};
use hickory_proto::rr::Name;
use tokio::time::{Instant, timeout_at};

use crate::agreement::{self, Dns};
use crate::authorities::Authorities;
use crate::claim::Claim;
use crate::question::{Heard, Question};
use crate::reply::{self, Reply};
use crate::saying::{self, Saying};
use crate::settings::TRIES;
use crate::wire::{Flow, Transport, Wire};

/// The first witness: the owner record, at its authorities.
pub(crate) struct Lookup<'a> {
    pub(crate) wire: &'a dyn Wire,
    pub(crate) authorities: &'a Authorities,
    pub(crate) claim: &'a Claim,
    /// For one try.
    pub(crate) attempt: Duration,
    /// Off in broken variants only.
    pub(crate) compares_epochs: bool,
}

impl Lookup<'_> {
    /// What the authorities say together, and whether one of them has shown the claim's own epoch.
    pub(crate) async fn ask(&self) -> (Dns, bool) {
        match self.said().await {
            Ok(said) => (agreement::of(&said), agreement::shows_own_epoch(&said)),
            Err(why) => (Dns::Silent(why), false),
        }
    }

    /// Asks all authorities. It takes two attempts at most.
    pub(crate) async fn said(&self) -> Result<Vec<(SocketAddr, Saying)>, String> {
        let end = Instant::now() + self.attempt * TRIES;
        // Only where they are not known yet does this take any time; then there is that much less for
        // questions.
        let servers = self.authorities.servers(self.attempt).await?;
        let said = join_all(
            servers
                .into_iter()
                .map(|server| async move { (server, self.ask_one(server, end).await) }),
        );
        let (said, ()) = join(said, self.authorities.refresh(self.attempt)).await;
        Ok(said)
    }

    /// First over UDP. Then both ways at once: a datagram may be lost, and a firewall may stop either of
    /// them.
    async fn ask_one(&self, server: SocketAddr, end: Instant) -> Saying {
        let first = self.attempt_one(server, Transport::Udp, end).await;
        if !matches!(first, Saying::Silent(_)) {
            return first;
        }
        let udp = Box::pin(self.attempt_one(server, Transport::Udp, end));
        let tcp = Box::pin(self.attempt_one(server, Transport::Tcp, end));
        match select(udp, tcp).await {
            Either::Left((Saying::Silent(_), tcp)) => tcp.await,
            Either::Right((Saying::Silent(_), udp)) => udp.await,
            Either::Left((said, _)) | Either::Right((said, _)) => said,
        }
    }

    async fn attempt_one(&self, server: SocketAddr, transport: Transport, end: Instant) -> Saying {
        let until = end.min(Instant::now() + self.attempt);
        match timeout_at(until, self.questions(server, transport)).await {
            Ok(saying) => saying,
            Err(_) => Saying::Silent(format!("no answer over {transport:?} within {:?}", self.attempt)),
        }
    }

    /// Both questions, by one flow. What is cut off over UDP is asked anew over TCP, both questions of it.
    async fn questions(&self, server: SocketAddr, transport: Transport) -> Saying {
        match self.over(server, transport).await {
            Ok(Some(said)) => said,
            Ok(None) if transport == Transport::Udp => match self.over(server, Transport::Tcp).await {
                Ok(Some(said)) => said,
                Ok(None) => cut_off(),
                Err(why) => Saying::Silent(why),
            },
            Ok(None) => cut_off(),
            Err(why) => Saying::Silent(why),
        }
    }

    /// Both questions reach the same server behind an anycast address: they share one flow. The epoch comes
    /// first: `saying::of_epoch` gives the reason. None: the server has cut an answer off.
    async fn over(&self, server: SocketAddr, transport: Transport) -> Result<Option<Saying>, String> {
        let flow = self.wire.connect(server, transport).await;
        let mut flow = flow.map_err(|error| error.to_string())?;
        let Some(epoch) = self.texts(&mut *flow, &self.claim.epoch_name).await? else {
            return Ok(None);
        };
        if let Some(said) = saying::of_epoch(self.claim, &epoch)
            && self.compares_epochs
        {
            return Ok(Some(said));
        }
        let owner = self.texts(&mut *flow, &self.claim.owner_name).await?;
        Ok(owner.map(|owner| saying::of_owner(self.claim, &owner)))
    }

    async fn texts(&self, flow: &mut dyn Flow, name: &Name) -> Result<Option<Reply>, String> {
        let question = Question::new(name)?;
        match flow.ask(&question).await {
            Ok(Heard::Answer(answer)) => Ok(Some(reply::read(&answer, name, &self.authorities.zone))),
            Ok(Heard::Truncated) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }
}

fn cut_off() -> Saying {
    Saying::Silent("it cuts its answer off over TCP".to_owned())
}
