//! Limits on load from outside of the process: the size and depth of an answer of an API server, the elements
//! of a list, the names in a message, and the workers that the objects of a project hold.
//!
//! | file | limit |
//! |---|---|
//! | `response_size`, `unzip` | bytes of an answer of an API server, also after decompression |
//! | `pruning` | levels of nesting, and the fields that are kept |
//! | `paged_list` | objects of a list that are in memory at the same time |
//! | `first_elements` | elements of a list within an object |
//! | `name_list` | names in a message |
//! | `worker_shares` | workers of a controller that the objects of a project hold |

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
