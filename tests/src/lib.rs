//! What the demo and the end-to-end tests share: a landscape of real clusters, a Shoot as a user writes it, a writer
//! that keeps writing through the shoot's own name, and proofs of what must not be lost.

pub mod availability;
pub mod dns;
pub mod landscape;
pub mod lifecycle;
pub mod managers;
pub mod manifests;
pub mod nodes;
pub mod proof;
pub mod shoot;
pub mod skew;
pub mod stored;
pub mod timeline;
pub mod writer;
