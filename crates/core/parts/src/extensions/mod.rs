//! Resources that providers and further extensions reconcile.
//!
//! | file | content |
//! |---|---|
//! | `resource` | an extension object of any kind: deploy, restore, migrate, delete, wait |
//! | `kinds` | all extension objects of a shoot, by discovery |
//! | `dynamic` | objects of a kind that is known only at run time |
//! | `infrastructure` | Infrastructure |
//! | `control_plane` | ControlPlane |
//! | `dns_records` | the DNS records of the API; `record` is shared with the owner record |
//! | `further_extensions` | objects of kind `Extension` |
//! | `subnet_isolation` | SubnetIsolation; `shared_close_deadline`: the time in a running flow |

pub(crate) mod control_plane;
pub(crate) mod dns_records;
pub(crate) mod dynamic;
pub(crate) mod further_extensions;
pub(crate) mod infrastructure;
pub(crate) mod kinds;
pub mod resource;
pub(crate) mod shared_close_deadline;
pub(crate) mod subnet_isolation;
