//! Shares of the workers of a controller, for each project.
//!
//! A flow holds a worker for minutes, and a server of a tenant can make a flow last. Without shares, the
//! Shoots of a project could hold all workers of a controller, and the Shoots of the remaining projects would
//! wait. The reasons are in `docs/understand/decisions/0044-workers-are-shared-by-project.md`.
//!
//! Each object waits for a [`WorkerSlot`] before the reconciliation starts. Three rules decide:
//!
//! 1. A project that is alone takes all workers. A project is alone if the controller has met no object of a
//!    second project for [`NEIGHBOUR_PERIOD`].
//! 2. Beside a second project, a project holds at most the configured share of the workers.
//! 3. Beyond the workers there is a reserve of a quarter. From the reserve a project takes a slot only if the
//!    project holds fewer slots than are free. So the first object of a project starts while objects of other
//!    projects hang, and a second project still finds a slot.
//!
//! The next slot goes to the project that holds the fewest slots, and among equals to the longest wait. The
//! objects of a project start in the order of arrival. So no project waits for ever.
//!
//! A slot is free as soon as the [`WorkerSlot`] is dropped: at the end of the work, after a panic, and when
//! the task is cancelled. A waiting task that is cancelled leaves the queue. The slot that was granted to
//! this task in the same moment is free again.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::oneshot, time::Instant};

/// How long a project without objects counts as a second project. Longer than the period after which a
/// gardenlet reconciles each Shoot (1 h by default), so that projects without changes count.
const NEIGHBOUR_PERIOD: Duration = Duration::from_secs(2 * 60 * 60);

/// The part of a controller's workers, in percent, that a project may hold beside a second project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharePercent(u8);

impl SharePercent {
    /// The default: half of the workers.
    pub const HALF: Self = Self(50);

    /// A share of 1 to 100 percent; further values are set to the nearest of these.
    #[must_use]
    pub fn new(percent: u8) -> Self {
        Self(percent.clamp(1, 100))
    }
}

/// The numbers of slots that the rules use.
#[derive(Clone, Copy, Debug)]
struct SlotLimits {
    workers: usize,
    share: usize,
    reserve: usize,
}

impl SlotLimits {
    fn new(workers: u16, SharePercent(percent): SharePercent) -> Self {
        let workers = usize::from(workers.max(1));
        Self {
            workers,
            share: (workers * usize::from(percent)).div_ceil(100),
            reserve: (workers / 4).max(1),
        }
    }

    /// Whether a project with this number of slots may take a further slot.
    fn allow(self, held: usize, in_use: usize, is_alone: bool) -> bool {
        if in_use < self.workers {
            return is_alone || held < self.share;
        }
        let free = (self.workers + self.reserve).saturating_sub(in_use);
        held < self.share.min(free)
    }
}

/// The slots of a controller, shared between projects.
#[derive(Debug)]
pub struct WorkerShares {
    limits: SlotLimits,
    slots: Mutex<SlotTable>,
}

#[derive(Debug, Default)]
struct SlotTable {
    projects: BTreeMap<String, ProjectQueue>,
    in_use: usize,
    /// Number of objects that have arrived: the order among projects.
    arrivals: u64,
}

#[derive(Debug)]
struct ProjectQueue {
    held: usize,
    /// In the order of arrival, with the number of the arrival.
    waiting: VecDeque<(u64, oneshot::Sender<WorkerSlot>)>,
    last_arrival: Instant,
}

/// The right to work on an object. The drop of this value frees the slot.
#[derive(Debug)]
#[must_use]
pub struct WorkerSlot {
    shares: Arc<WorkerShares>,
    project: String,
}

impl WorkerShares {
    /// The shares of a controller with this number of workers.
    #[must_use]
    pub fn new(workers: u16, share: SharePercent) -> Arc<Self> {
        Arc::new(Self {
            limits: SlotLimits::new(workers, share),
            slots: Mutex::default(),
        })
    }

    /// Waits for a slot for an object of this project.
    pub async fn acquire(self: &Arc<Self>, project: &str) -> WorkerSlot {
        let (grant, granted) = oneshot::channel();
        self.slots().enqueue(project, grant);
        self.grant_free_slots();
        match granted.await {
            Ok(slot) => slot,
            // The table keeps the sender of each waiting object until the slot is sent.
            Err(_) => std::future::pending().await,
        }
    }

    fn grant_free_slots(self: &Arc<Self>) {
        loop {
            // In a separate statement, so that the lock is released: a slot that cannot be sent is dropped,
            // and the drop takes the lock.
            let next = self.slots().take_next(self.limits);
            let Some((project, grant)) = next else { return };
            let slot = WorkerSlot {
                shares: Arc::clone(self),
                project,
            };
            drop(grant.send(slot));
        }
    }

    fn slots(&self) -> MutexGuard<'_, SlotTable> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SlotTable {
    fn enqueue(&mut self, project: &str, grant: oneshot::Sender<WorkerSlot>) {
        let (now, arrival) = (Instant::now(), self.arrivals);
        self.arrivals += 1;
        let queue = self.projects.entry(project.to_owned());
        let queue = queue.or_insert_with(|| ProjectQueue {
            held: 0,
            waiting: VecDeque::new(),
            last_arrival: now,
        });
        queue.last_arrival = now;
        queue.waiting.push_back((arrival, grant));
    }

    /// Counts a slot for the next waiting object, and returns the project and the sender of the object.
    fn take_next(&mut self, limits: SlotLimits) -> Option<(String, oneshot::Sender<WorkerSlot>)> {
        self.forget_former_projects();
        let (in_use, is_alone) = (self.in_use, self.projects.len() == 1);
        let candidates = self.projects.iter_mut().filter_map(|(project, queue)| {
            let (arrival, _) = queue.waiting.front()?;
            let rank = (queue.held, *arrival);
            limits
                .allow(queue.held, in_use, is_alone)
                .then_some((rank, project, queue))
        });
        let (_, project, queue) = candidates.min_by_key(|(rank, ..)| *rank)?;
        let (_, grant) = queue.waiting.pop_front()?;
        queue.held += 1;
        self.in_use += 1;
        Some((project.clone(), grant))
    }

    fn forget_former_projects(&mut self) {
        let now = Instant::now();
        self.projects.retain(|_, queue| {
            // The tasks of these objects were cancelled.
            while queue.waiting.front().is_some_and(|(_, grant)| grant.is_closed()) {
                queue.waiting.pop_front();
            }
            let is_recent = now.duration_since(queue.last_arrival) < NEIGHBOUR_PERIOD;
            is_recent || queue.held > 0 || !queue.waiting.is_empty()
        });
    }

    fn release(&mut self, project: &str) {
        self.in_use = self.in_use.saturating_sub(1);
        if let Some(queue) = self.projects.get_mut(project) {
            queue.held = queue.held.saturating_sub(1);
        }
    }
}

impl Drop for WorkerSlot {
    fn drop(&mut self) {
        self.shares.slots().release(&self.project);
        self.shares.grant_free_slots();
    }
}

#[cfg(test)]
#[path = "worker_shares_tests.rs"]
mod tests;
