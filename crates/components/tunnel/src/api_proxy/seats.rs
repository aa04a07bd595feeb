//! Limits the connections of all pods together and of each pod.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
};

use crate::limits::{CONNECTIONS, CONNECTIONS_OF_ONE};

/// The number of connections by pod address.
#[derive(Debug, Default)]
pub(super) struct Seats(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// A place for a connection. Dropping the value frees the place.
#[derive(Debug)]
pub(super) struct Seat {
    of: IpAddr,
    all: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

impl Seats {
    /// Takes a place for this address; `None` at a limit.
    pub(super) fn take(&self, of: IpAddr) -> Option<Seat> {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = taken.get(&of).copied().unwrap_or_default();
        if own >= CONNECTIONS_OF_ONE || taken.values().sum::<usize>() >= CONNECTIONS {
            return None;
        }
        taken.insert(of, own + 1);
        let all = Arc::clone(&self.0);
        Some(Seat { of, all })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = taken.get_mut(&self.of) {
            *own -= 1;
            // Pods come and go, so an address without connections is removed.
            if *own == 0 {
                taken.remove(&self.of);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn nobody_takes_all_and_what_is_free_is_free() {
        let seats = Seats::default();
        let address = |n: u8| IpAddr::from([10, 0, 0, n]);
        let mut held: Vec<_> = (0..CONNECTIONS_OF_ONE)
            .map(|_| seats.take(address(1)).unwrap())
            .collect();
        assert!(seats.take(address(1)).is_none());
        let others = CONNECTIONS / CONNECTIONS_OF_ONE;
        for n in 2..=u8::try_from(others).unwrap() {
            held.extend((0..CONNECTIONS_OF_ONE).map(|_| seats.take(address(n)).unwrap()));
        }
        assert!(seats.take(address(200)).is_none(), "all are taken");
        held.pop();
        assert!(seats.take(address(200)).is_some());
        held.clear();
        assert!(seats.0.lock().unwrap().is_empty(), "nothing is remembered");
    }
}
