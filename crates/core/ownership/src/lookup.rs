//! Asks the authorities. Each authority gets both questions over a single flow, and further tries if
//! necessary.

use std::net::SocketAddr;
use std::time::Duration;

use futures::future::{Either, join, join_all, select};
use hickory_proto::rr::Name;
use tokio::time::{Instant, timeout_at};

use crate::authorities::Authorities;
use crate::claim::OwnershipClaim;
use crate::dns_verdict::{self, DnsVerdict};
use crate::question::{Question, ServerResponse};
use crate::record_verdict::{self, RecordVerdict};
use crate::reply::{self, Reply};
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
    /// Whether an authority with an earlier epoch is asked for the identity, too. An owner check needs no
    /// identity beside an earlier epoch.
    pub(crate) asks_earlier_owner: bool,
}

impl Lookup<'_> {
    /// The combined answer of the authorities, and whether an authority has shown the claim's own epoch.
    pub(crate) async fn ask(&self) -> (DnsVerdict, bool) {
        match self.ask_all().await {
            Ok(verdicts) => (
                dns_verdict::combine(&verdicts),
                dns_verdict::shows_own_epoch(&verdicts),
            ),
            Err(why) => (DnsVerdict::Silent(why), false),
        }
    }

    /// Asks all authorities. Takes the time of all tries at most.
    pub(crate) async fn ask_all(&self) -> Result<Vec<(SocketAddr, RecordVerdict)>, String> {
        let end = Instant::now() + self.attempt * TRIES;
        // Only a lookup of unknown servers takes time here; that time is missing for the questions.
        let servers = self.authorities.servers(self.attempt).await?;
        let verdicts = join_all(
            servers
                .into_iter()
                .map(|server| async move { (server, self.ask_one(server, end).await) }),
        );
        let (verdicts, ()) = join(verdicts, self.authorities.refresh(self.attempt)).await;
        Ok(verdicts)
    }

    /// The first try uses UDP. Each further try uses UDP and TCP at once: a datagram may be lost, and a
    /// firewall may block either transport.
    async fn ask_one(&self, server: SocketAddr, end: Instant) -> RecordVerdict {
        let mut verdict = self.attempt_one(server, Transport::Udp, end).await;
        for _ in 1..TRIES {
            if !matches!(verdict, RecordVerdict::Silent(_)) {
                break;
            }
            verdict = self.attempt_both(server, end).await;
        }
        verdict
    }

    async fn attempt_both(&self, server: SocketAddr, end: Instant) -> RecordVerdict {
        let udp = Box::pin(self.attempt_one(server, Transport::Udp, end));
        let tcp = Box::pin(self.attempt_one(server, Transport::Tcp, end));
        match select(udp, tcp).await {
            Either::Left((RecordVerdict::Silent(_), tcp)) => tcp.await,
            Either::Right((RecordVerdict::Silent(_), udp)) => udp.await,
            Either::Left((verdict, _)) | Either::Right((verdict, _)) => verdict,
        }
    }

    async fn attempt_one(&self, server: SocketAddr, transport: Transport, end: Instant) -> RecordVerdict {
        let until = end.min(Instant::now() + self.attempt);
        match timeout_at(until, self.ask_both(server, transport)).await {
            Ok(verdict) => verdict,
            Err(_) => {
                RecordVerdict::Silent(format!("no answer over {transport:?} within {:?}", self.attempt))
            }
        }
    }

    /// Both questions, over a single flow. If an answer over UDP is truncated, both questions are asked again
    /// over TCP.
    async fn ask_both(&self, server: SocketAddr, transport: Transport) -> RecordVerdict {
        match self.ask_over(server, transport).await {
            Ok(Some(verdict)) => verdict,
            Ok(None) if transport == Transport::Udp => match self.ask_over(server, Transport::Tcp).await {
                Ok(Some(verdict)) => verdict,
                Ok(None) => truncated_over_tcp(),
                Err(why) => RecordVerdict::Silent(why),
            },
            Ok(None) => truncated_over_tcp(),
            Err(why) => RecordVerdict::Silent(why),
        }
    }

    /// Both questions reach the same server behind an anycast address, because the questions share a flow.
    /// The epoch is asked first; `record_verdict::from_epoch_reply` gives the reason. `None`: the server has
    /// truncated an answer.
    async fn ask_over(
        &self,
        server: SocketAddr,
        transport: Transport,
    ) -> Result<Option<RecordVerdict>, String> {
        let flow = self.wire.connect(server, transport).await;
        let mut flow = flow.map_err(|error| error.to_string())?;
        let Some(epoch) = self.ask_text(&mut *flow, &self.claim.epoch_name).await? else {
            return Ok(None);
        };
        if let Some(verdict) = record_verdict::from_epoch_reply(self.claim, &epoch)
            && self.compares_epochs
        {
            let asks_owner =
                self.asks_earlier_owner && record_verdict::shows_earlier_epoch(self.claim, &epoch);
            if !asks_owner {
                return Ok(Some(verdict));
            }
            let owner = self.ask_text(&mut *flow, &self.claim.owner_name).await?;
            return Ok(owner.map(|owner| record_verdict::from_earlier_owner_reply(&owner)));
        }
        let owner = self.ask_text(&mut *flow, &self.claim.owner_name).await?;
        Ok(owner.map(|owner| record_verdict::from_owner_reply(self.claim, &owner)))
    }

    async fn ask_text(&self, flow: &mut dyn Flow, name: &Name) -> Result<Option<Reply>, String> {
        let question = Question::new(name)?;
        match flow.ask(&question).await {
            Ok(ServerResponse::Answer(answer)) => {
                Ok(Some(reply::read(&answer, name, &self.authorities.zone)))
            }
            Ok(ServerResponse::Truncated) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }
}

fn truncated_over_tcp() -> RecordVerdict {
    RecordVerdict::Silent("it cuts its answer off over TCP".to_owned())
}
