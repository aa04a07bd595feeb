//! A simulated process: an election and, beside the election, the tasks of the work. A process can be
//! stopped.

use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::StreamExt;
use futures::future::{AbortHandle, Abortable, BoxFuture};
use futures::stream::FuturesUnordered;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use permit::Permit;
use serde_json::json;
use tokio::time::{Instant, Sleep, sleep, sleep_until};
use tower::{Layer, service_fn};

/// After a stop, the election is scheduled later than the tasks by this time.
const LATER: Duration = Duration::from_millis(20);

/// The end of the stop.
pub(super) type Stopped = Arc<Mutex<Option<Instant>>>;

/// Tasks that were started and are not yet polled by the process.
pub(super) type Tasks = Arc<Mutex<Vec<BoxFuture<'static, ()>>>>;

/// Runs an election with the tasks of the work. Each task runs when ready, as threads of a process would: no
/// task waits for another task. A stopped process polls no task.
pub(super) struct Process<F> {
    election: Pin<Box<F>>,
    started: Tasks,
    tasks: FuturesUnordered<BoxFuture<'static, ()>>,
    stopped: Stopped,
    woken: Pin<Box<Sleep>>,
}

impl<F: Future> Process<F> {
    pub(super) fn new(election: F, started: Tasks, stopped: Stopped) -> Self {
        Self {
            election: Box::pin(election),
            started,
            tasks: FuturesUnordered::new(),
            stopped,
            woken: Box::pin(sleep(Duration::ZERO)),
        }
    }
}

impl<F: Future> Future for Process<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        let stopped = *this.stopped.lock().unwrap();
        if let Some(until) = stopped.filter(|until| Instant::now() < *until) {
            this.woken.as_mut().reset(until);
            let _ = this.woken.as_mut().poll(context);
            return Poll::Pending;
        }
        // The tasks first: the worst order.
        this.tasks.extend(this.started.lock().unwrap().drain(..));
        while let Poll::Ready(Some(())) = this.tasks.poll_next_unpin(context) {}
        if let Some(late) = stopped
            .map(|until| until + LATER)
            .filter(|late| Instant::now() < *late)
        {
            this.woken.as_mut().reset(late);
            let _ = this.woken.as_mut().poll(context);
            return Poll::Pending;
        }
        let ended = this.election.as_mut().poll(context);
        if !this.started.lock().unwrap().is_empty() {
            context.waker().wake_by_ref();
        }
        ended
    }
}

/// Ends a task when the work that started the task is dropped, as kube's controllers do: the task ends a
/// moment later.
struct EndOnDrop(AbortHandle);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The work of a holder: a task that writes repeatedly in the name of this hold.
pub(super) async fn work(hold: usize, client: Client, tasks: Tasks, lasts: Duration) {
    let maps: Api<ConfigMap> = Api::namespaced(client, "ns");
    let writing = async move {
        loop {
            let name = format!("hold-{hold}");
            let patch = Patch::Merge(json!({"metadata": {"name": name}}));
            let _ = maps.patch(&name, &PatchParams::default(), &patch).await;
            sleep(Duration::from_millis(fastrand::u64(50..700))).await;
        }
    };
    let (handle, registration) = AbortHandle::new_pair();
    let _end = EndOnDrop(handle);
    let task = Abortable::new(writing, registration);
    tasks.lock().unwrap().push(Box::pin(async move {
        let _: Result<(), _> = task.await;
    }));
    sleep_until(Instant::now() + lasts).await;
    if lasts.is_zero() {
        pending::<()>().await;
    }
}

/// A client with requests that leave only while the permit is valid.
pub(super) fn fence(client: Client, permit: &Permit) -> Client {
    let service = service_fn(move |request| {
        let client = client.clone();
        async move { client.send(request).await }
    });
    #[allow(clippy::disallowed_methods)] // the client leads to no server
    Client::new(permit.layer().layer(service), "ns")
}
