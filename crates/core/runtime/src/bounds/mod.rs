//! Limits on untrusted input: the size and depth of an answer of an API server, the elements of a list, the
//! names in a message, and the workers that the objects of a project hold.

mod first_elements;
mod name_list;
pub(crate) mod paged_list;
pub(crate) mod pruning;
pub(crate) mod response_size;
pub(crate) mod unzip;
mod worker_shares;

pub use first_elements::{Few, FewEntries};
pub use name_list::some_of;
pub use paged_list::survey;
pub use worker_shares::{SharePercent, WorkerShares, WorkerSlot};
