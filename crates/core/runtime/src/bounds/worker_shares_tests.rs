//! The rules of the shares, and the slots of tasks that are cancelled.

#![allow(clippy::unwrap_used)]

use std::pin::Pin;

use futures::FutureExt as _;

use super::*;

type Acquire<'a> = Pin<Box<dyn Future<Output = WorkerSlot> + Send + 'a>>;

/// An object that has arrived at the controller.
struct Arrived<'a> {
    acquire: Acquire<'a>,
    slot: Option<WorkerSlot>,
}

impl<'a> Arrived<'a> {
    fn new(shares: &'a Arc<WorkerShares>, project: &'a str) -> Self {
        let mut arrived = Self {
            acquire: Box::pin(shares.acquire(project)),
            slot: None,
        };
        arrived.is_working();
        arrived
    }

    fn many(shares: &'a Arc<WorkerShares>, project: &'a str, count: usize) -> Vec<Self> {
        (0..count).map(|_| Self::new(shares, project)).collect()
    }

    /// Whether the object holds a slot.
    fn is_working(&mut self) -> bool {
        if self.slot.is_none() {
            self.slot = self.acquire.as_mut().now_or_never();
        }
        self.slot.is_some()
    }
}

fn working(objects: &mut [Arrived<'_>]) -> usize {
    objects
        .iter_mut()
        .map(Arrived::is_working)
        .filter(|works| *works)
        .count()
}

#[test]
fn a_project_alone_takes_all_workers() {
    let shares = WorkerShares::new(20, SharePercent::HALF);
    let mut alone = Arrived::many(&shares, "a", 30);
    assert_eq!(working(&mut alone), 20);
    // Each slot that is released goes to the next object at once.
    alone.remove(0);
    assert_eq!(working(&mut alone), 20);
}

#[test]
fn beside_a_second_project_a_project_holds_at_most_the_share() {
    for (workers, percent, expected) in [(20, 50, 10), (20, 25, 5), (5, 50, 3), (20, 100, 19), (1, 1, 1)] {
        let shares = WorkerShares::new(workers, SharePercent::new(percent));
        let mut neighbour = Arrived::new(&shares, "neighbour");
        assert!(neighbour.is_working());
        let mut many = Arrived::many(&shares, "a", 40);
        assert_eq!(working(&mut many), expected, "{workers} {percent}");
    }
}

/// The objects of a project hang: no slot is released.
#[test]
fn objects_that_hang_do_not_keep_a_second_project_from_its_start() {
    let shares = WorkerShares::new(20, SharePercent::HALF);
    let mut hanging = Arrived::many(&shares, "a", 40);
    assert_eq!(working(&mut hanging), 20);
    // The reserve has five slots, and leaves slots for further projects.
    for (project, expected) in [("b", 3), ("c", 1), ("d", 1)] {
        let mut objects = Arrived::many(&shares, project, 10);
        assert_eq!(working(&mut objects), expected, "{project}");
        hanging.append(&mut objects);
    }
    assert_eq!(shares.slots().in_use, 25);
    assert!(!Arrived::new(&shares, "e").is_working());
}

#[test]
fn a_single_worker_works_on_a_single_object_of_a_project() {
    let shares = WorkerShares::new(1, SharePercent::HALF);
    let mut first = Arrived::many(&shares, "a", 2);
    assert_eq!(working(&mut first), 1);
    let mut second = Arrived::many(&shares, "b", 2);
    assert_eq!(working(&mut second), 1, "the reserve");
}

/// After a peak of one project, slots go to the project with the fewest, in the order of arrival.
#[test]
fn a_released_slot_goes_to_the_project_with_the_fewest_slots() {
    let shares = WorkerShares::new(4, SharePercent::HALF);
    let mut of_a = Arrived::many(&shares, "a", 8);
    let mut of_b = Arrived::many(&shares, "b", 3);
    assert_eq!((working(&mut of_a), working(&mut of_b)), (4, 1));
    // Two objects end: project `a` still holds the share, and `b` gets a second slot.
    of_a.drain(..2);
    assert_eq!((working(&mut of_a), working(&mut of_b)), (2, 2));
    of_b.clear();
    assert_eq!(working(&mut of_a), 2, "the share holds while `b` may come back");
}

#[test]
fn the_objects_of_a_project_start_in_the_order_of_arrival() {
    let shares = WorkerShares::new(1, SharePercent::HALF);
    let mut waiting = VecDeque::from(Arrived::many(&shares, "a", 4));
    while let Some(mut first) = waiting.pop_front() {
        assert!(first.is_working());
        assert_eq!(working(waiting.make_contiguous()), 0);
    }
    assert_eq!(shares.slots().in_use, 0);
}

#[test]
fn a_cancelled_object_leaves_the_queue_and_frees_a_slot_that_was_granted() {
    let shares = WorkerShares::new(1, SharePercent::HALF);
    let mut objects = Arrived::many(&shares, "a", 4);
    assert_eq!(working(&mut objects), 1);
    // The second object is cancelled while it waits.
    drop(objects.remove(1));
    // The third object gets the slot, and is cancelled before its task runs.
    drop(objects.remove(0));
    drop(objects.remove(0));
    assert_eq!(working(&mut objects), 1);
    drop(objects);
    assert_eq!(shares.slots().in_use, 0);
}

#[tokio::test(start_paused = true)]
async fn a_project_is_alone_again_after_a_time_without_a_second_project() {
    let shares = WorkerShares::new(4, SharePercent::HALF);
    drop(shares.acquire("b").await);
    let mut of_a = Arrived::many(&shares, "a", 6);
    assert_eq!(working(&mut of_a), 2);
    tokio::time::advance(NEIGHBOUR_PERIOD).await;
    // The next end of an object applies the rules again.
    drop(of_a.remove(0));
    assert_eq!(working(&mut of_a), 4);
    assert_eq!(shares.slots().projects.len(), 1);
}

/// No wake-up is lost: all objects of all projects work at some time, on several threads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_object_gets_a_slot() {
    let shares = WorkerShares::new(4, SharePercent::HALF);
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..600 {
        let shares = Arc::clone(&shares);
        tasks.spawn(async move {
            let project = format!("project-{}", number % 7);
            let acquire = shares.acquire(&project);
            if number % 5 == 0 {
                // Cancelled: in the queue, or with a granted slot.
                acquire.now_or_never();
                return;
            }
            let slot = acquire.await;
            let in_use = shares.slots().in_use;
            assert!(in_use <= 5, "{in_use}");
            tokio::task::yield_now().await;
            drop(slot);
        });
    }
    let all = async { while tasks.join_next().await.is_some_and(|ended| ended.is_ok()) {} };
    tokio::time::timeout(Duration::from_secs(60), all).await.unwrap();
    assert!(tasks.is_empty());
    assert_eq!(shares.slots().in_use, 0);
}
