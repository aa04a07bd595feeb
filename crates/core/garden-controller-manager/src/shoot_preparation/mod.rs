//! Grants a seed the right to prepare for a shoot that a different seed serves: annotation
//! `migration.gardener.cloud/prepare=<seed>` of a Shoot, and `status.liveMigration`. Off unless
//! `--preparations-per-seed` is set.
//!
//! Guarantees: a grant names the uid of the Shoot, the source, the epoch and the expiry, and only this
//! controller writes a grant. At most the configured number of shoots have a grant for a seed. A grant ends
//! with the annotation, with a change of the annotation, at the expiry, and when the destination is silent or
//! leaves the garden. A further grant for the same request ends before the former grant. A host that removes
//! a grant ends the request. A deletion, a hand-over and a takeover void the grant in the same write
//! (`placement::preparation`). No move depends on a grant: a move without downtime of the API does not exist
//! yet, and a preparation changes no planned move.
//!
//! | file | content |
//! |---|---|
//! | `decision` | the grant that the Shoot needs now |
//! | `grant_slots` | the number of shoots with a grant for a seed, and the order and the ends of grants |
//! | `change` | the content of `status.liveMigration` |
//! | `controller` | the reconcile loop |

mod change;
mod controller;
mod decision;
mod grant_slots;

pub use controller::run;
