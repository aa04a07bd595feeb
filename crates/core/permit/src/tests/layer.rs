//! Requests behind a fence.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use http::Request;
use tokio::time::{Instant, advance, sleep};
use tower::{Layer, Service, service_fn};

use super::{SECOND, TIME_IS_OVER, issued_for, refusal};

fn write() -> Request<()> {
    Request::put("/").body(()).unwrap()
}

/// A service that sends in the second step, like clients that queue, connect or retry first.
fn slow_service(
    sent: &Arc<AtomicU32>,
) -> impl Service<Request<()>, Response = (), Error = std::io::Error, Future: Send + 'static> + use<> {
    let sent = Arc::clone(sent);
    service_fn(move |_| {
        let sent = Arc::clone(&sent);
        async move {
            sleep(SECOND).await;
            sent.fetch_add(1, Ordering::SeqCst);
            Ok(())
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_fence_lets_requests_through_while_it_is_permitted() {
    let (issuer, sent) = (issued_for(10 * SECOND), Arc::default());
    let mut client = issuer.permit().layer().layer(slow_service(&sent));
    client.call(write()).await.unwrap();
    assert_eq!(sent.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_fence_refuses_a_request_afterwards() {
    let (issuer, sent) = (issued_for(10 * SECOND), Arc::default());
    let mut client = issuer.permit().layer().layer(slow_service(&sent));
    advance(10 * SECOND).await;
    let error = client.call(write()).await.unwrap_err();
    assert_eq!(error.downcast_ref(), Some(&refusal(TIME_IS_OVER)));
    assert_eq!(sent.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn a_fence_holds_back_a_request_that_was_waiting_during_a_stop() {
    let (issuer, sent) = (issued_for(10 * SECOND), Arc::default());
    let mut client = issuer.permit().layer().layer(slow_service(&sent));
    let mut request = client.call(write());
    assert!(futures::poll!(&mut request).is_pending());
    advance(3600 * SECOND).await;
    let error = request.await.unwrap_err();
    assert_eq!(error.downcast_ref(), Some(&refusal(TIME_IS_OVER)));
    assert_eq!(sent.load(Ordering::SeqCst), 0, "it left after the right was lost");
}

/// No request leaves between the end of the work and the end of the right; a request under way is not cut
/// off.
#[tokio::test(start_paused = true)]
async fn a_fence_that_is_closed_begins_nothing_and_keeps_what_was_begun() {
    let (issuer, sent) = (issued_for(10 * SECOND), Arc::default());
    let mut client = issuer.permit().layer().layer(slow_service(&sent));
    let mut begun = client.call(write());
    let waits = client.call(write());
    assert!(futures::poll!(&mut begun).is_pending());
    issuer.close();
    let refused = refusal("it is being given back");
    for late in [begun, waits, client.call(write())] {
        assert_eq!(late.await.unwrap_err().downcast_ref(), Some(&refused));
    }
    assert!(issuer.in_time(), "the right is still there");
    let start = Instant::now();
    assert!(issuer.settling().settle().await);
    assert_eq!((sent.load(Ordering::SeqCst), start.elapsed()), (1, SECOND));
}

/// After the end of the validity an effect may not even finish.
#[tokio::test(start_paused = true)]
async fn what_is_finished_ends_with_the_right() {
    let (issuer, sent) = (issued_for(10 * SECOND), Arc::default());
    let mut client = issuer.permit().layer().layer(slow_service(&sent));
    let mut begun = client.call(write());
    assert!(futures::poll!(&mut begun).is_pending());
    drop(begun);
    issuer.close();
    advance(3600 * SECOND).await;
    assert!(!issuer.settling().settle().await);
    assert_eq!(sent.load(Ordering::SeqCst), 0);
}
