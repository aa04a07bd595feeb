//! Limits on untrusted input: the size and depth of an answer of an API server, the elements of a list, and
//! the names in a message.

mod first_elements;
mod name_list;
pub(crate) mod paged_list;
pub(crate) mod pruning;
pub(crate) mod response_size;

pub use first_elements::{Few, FewEntries};
pub use name_list::some_of;
pub use paged_list::survey;
