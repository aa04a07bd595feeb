//! The cloud as the controllers see it: ConfigMaps in the namespace that is the account (see `provider_local::cloud`).
//!
//! | ConfigMap | key | value | who writes |
//! |---|---|---|---|
//! | `instances.<cluster>` | name of the instance, which is the Node's | JSON, see [`Instance`] | made empty with the network, by `provider_local::infrastructure`; then whoever makes and stops instances |
//! | `load-balancers` | `<cluster>.<uid of the Service>` | JSON, see [`LoadBalancer`] | the service controllers of all clusters |
//!
//! `<cluster>` is `--cluster-name`: the shoot's technical id. Names of nodes are unique in a shoot only, hence one list of
//! instances a cluster. Addresses are unique in an account, hence one ledger of load balancers for all clusters.
//!
//! Of the instances each writer changes only the key of its own instance, so writers need not know of each other. In the ledger
//! a choice depends on what others chose, so it is written only in the version that was read.
//!
//! **A list that is missing is not an empty list.** A namespace that is not the right one, an account without rights and an
//! API server that is away all give errors, and so does an entry that cannot be read: nothing is concluded from them (I4).

mod account;
mod instances;
mod load_balancers;
mod provider_id;

pub use account::{Account, Source, Wrap};
pub use instances::{Address, Instance, Instances, Inventory, State};
pub use load_balancers::{LEDGER, LoadBalancer, LoadBalancers};
pub use provider_id::ProviderId;
