//! Object stores and the services of AWS, for clients of the crate `object_store`: all requests need a
//! [`permit::Permit`].
//!
//! The default HTTP client of the library gives no access to the sockets. So the requests of the library, and
//! the requests that the library does not have, leave through a client of this crate. The connections of that
//! client discard unsent bytes when the permit ends ([`permit::PermittedConnector`]).
//!
//! | file | purpose |
//! |---|---|
//! | `store` | the HTTP client of the library, with requests that need the permit |
//! | `proxy` | connections through the proxy of the environment |
//! | `bucket`, `bucket_xml` | S3 listings and removals for every key and version |
//! | `creation` | creation of an object that must not exist yet |
//! | `aws_partition` | domains of AWS by region |
//! | `aws_secret` | keys of a Secret that name credentials outside the Secret |
//! | `web_identity` | keys of a role, issued for a token |
//! | `web_identity_secret` | the keys of a backup Secret that name a role |
//! | `web_identity_answer` | answers and failures of the token service |

mod aws_partition;
mod aws_secret;
mod bucket;
mod bucket_xml;
mod creation;
mod proxy;
mod store;
mod web_identity;
mod web_identity_answer;
mod web_identity_secret;

pub use aws_partition::aws_domain;
pub use aws_secret::external_credentials;
pub use bucket::{Bucket, Listed, REMOVED_AT_ONCE};
pub use bucket_xml::{ListedObject, Position, RefusedRemoval};
pub use creation::create_object;
pub use store::{ConnectionPool, StoreConnector};
pub use web_identity::WebIdentity;
pub use web_identity_answer::{WebIdentityCause, WebIdentityError};
pub use web_identity_secret::{WebIdentityKeys, WebIdentityRole};
