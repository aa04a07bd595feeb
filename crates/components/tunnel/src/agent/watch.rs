//! Serves a connection to the server until the connection ends.

use std::{net::SocketAddr, pin::pin, sync::Arc};

use hyper::{server::conn::http2, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

use super::{
    service::{self, Carried, Carrier},
    way::{Connected, Doubt, Way},
};
use crate::limits::{
    ALIVE_EVERY, ALIVE_WITHIN, HANDSHAKE, HEADERS, LOOK_UP_EVERY, SEND_BUFFER, SHARED_WINDOW, STREAMS, WINDOW,
};

/// Serves the requests on a connection to the end, and returns the reason for the end. The agent ends the
/// connection at shutdown, and when the name leads to a different address. Requests under way then get up to
/// [`HANDSHAKE`] to finish.
pub(super) async fn serve(
    carrier: &Arc<Carrier>,
    way: &Way,
    connected: Connected,
    shutdown: &CancellationToken,
) -> String {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(SHARED_WINDOW)
        .max_send_buf_size(SEND_BUFFER)
        .max_header_list_size(u32::try_from(HEADERS).unwrap_or(u32::MAX))
        .keep_alive_interval(ALIVE_EVERY)
        .keep_alive_timeout(ALIVE_WITHIN);
    let streams = Arc::new(Carried::default());
    let handler = {
        let carrier = Arc::clone(carrier);
        service_fn(move |request| service::answer(Arc::clone(&carrier), Arc::clone(&streams), request))
    };
    let address = connected.address;
    let mut connection = pin!(builder.serve_connection(TokioIo::new(connected.stream), handler));
    let why = tokio::select! {
        ended = connection.as_mut() => return match ended {
            Ok(()) => "the server has closed it".to_owned(),
            Err(error) => format!("it broke off: {error}"),
        },
        () = shutdown.cancelled() => "the agent is told to stop".to_owned(),
        () = led_elsewhere(way, address) => format!("{} does not lead to {address} any more", way.host),
    };
    // The graceful shutdown tells the server to send no further requests; earlier requests are still
    // answered.
    connection.as_mut().graceful_shutdown();
    let _ = timeout(HANDSHAKE, connection).await;
    why
}

/// Returns when several consecutive lookups have not contained this address. A failed lookup does not count.
async fn led_elsewhere(way: &Way, address: SocketAddr) {
    let mut looks = interval(LOOK_UP_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut doubt = Doubt::default();
    loop {
        looks.tick().await;
        if doubt.is_sure(way.addresses().await.as_deref(), address) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::{
        io,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use futures::FutureExt;
    use tokio::time::Instant;

    use super::*;

    /// A name with these answers in order; the last answer repeats.
    fn name(answers: &'static [Option<&'static str>]) -> Way {
        let asked = Arc::new(AtomicUsize::new(0));
        Way {
            host: "api.example.test".into(),
            lookup: Arc::new(move || {
                let n = asked.fetch_add(1, Ordering::Relaxed).min(answers.len() - 1);
                let answer = answers[n].map(|address| vec![address.parse().unwrap()]);
                let answer = answer.ok_or_else(|| io::Error::other("not found"));
                async move { answer }.boxed()
            }),
        }
    }

    const HERE: Option<&str> = Some("192.0.2.1:443");
    const THERE: Option<&str> = Some("192.0.2.2:443");

    #[tokio::test(start_paused = true)]
    async fn an_agent_follows_the_name_when_it_is_sure() {
        let here = HERE.unwrap().parse().unwrap();
        let begun = Instant::now();
        // A single different answer and a failed lookup are no reason to leave.
        let answers = &[HERE, THERE, HERE, None, THERE, None, THERE, THERE];
        led_elsewhere(&name(answers), here).await;
        assert_eq!(begun.elapsed(), LOOK_UP_EVERY * 7);
    }

    #[tokio::test(start_paused = true)]
    async fn it_stays_while_dns_is_away() {
        let here = HERE.unwrap().parse().unwrap();
        let way = name(&[HERE, None]);
        let left = timeout(LOOK_UP_EVERY * 1000, led_elsewhere(&way, here)).await;
        assert!(left.is_err());
    }
}
