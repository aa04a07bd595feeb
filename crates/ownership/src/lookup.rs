//! Asks the authorities. Each authority gets both questions over a single flow, and a second try if
//! necessary.

use std::net::SocketAddr;
use std::time::Duration;

use futures::future::{Either, join, join_all, select};
use hickory_proto::rr::Name;
use tokio::time::{Instant, timeout_at};

use crate::agreement::{self, Dns};
use crate::authorities::Authorities;
use crate::claim::OwnershipClaim;
use crate::question::{Heard, Question};
use crate::reply::{self, Reply};
use crate::saying::{self, Saying};
use crate::settings::TRIES;
use crate::wire::{Flow, Transport, Wire};

/// The first witness: the owner record, at the zone's authorities.
pub(crate) struct Lookup<'a> {
    pub(crate) wire: &'a dyn Wire,
    pub(crate) authorities: &'a Authorities,
    pub(crate) claim: &'a OwnershipClaim,
    /// Bound of a single try.
    pub(crate) attempt: Duration,
    /// False only in the simulation's broken variants.
    pub(crate) compares_epochs: bool,
}

impl Lookup<'_> {
    /// The combined answer of the authorities, and whether an authority has shown the claim's own epoch.
    pub(crate) async fn ask(&self) -> (Dns, bool) {
        match self.ask_all().await {
            Ok(said) => (agreement::combine(&said), agreement::shows_own_epoch(&said)),
            Err(why) => (Dns::Silent(why), false),
        }
    }

    /// Asks all authorities. Takes the time of two attempts at most.
    pub(crate) async fn ask_all(&self) -> Result<Vec<(SocketAddr, Saying)>, String> {
        let end = Instant::now() + self.attempt * TRIES;
        // Only a lookup of unknown servers takes time here; that time is missing for the questions.
        let servers = self.authorities.servers(self.attempt).await?;
        let said = join_all(
            servers
                .into_iter()
                .map(|server| async move { (server, self.ask_one(server, end).await) }),
        );
        let (said, ()) = join(said, self.authorities.refresh(self.attempt)).await;
        Ok(said)
    }

    /// The first try uses UDP. The second try uses UDP and TCP at once: a datagram may be lost, and a
    /// firewall may block either transport.
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

    /// Both questions, over a single flow. If an answer over UDP is truncated, both questions are asked again
    /// over TCP.
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

    /// Both questions reach the same server behind an anycast address, because the questions share a flow.
    /// The epoch is asked first; `saying::of_epoch` gives the reason. `None`: the server has truncated an
    /// answer.
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
