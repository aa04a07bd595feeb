//! The identity of the pods: none in the API, since nothing in them talks to it.

use k8s_openapi::api::core::v1::ServiceAccount;

use super::meta;
use crate::{names::MEMBER_COMPONENT, wanted::Wanted};

/// The ServiceAccount of an Etcd's pods.
#[must_use]
pub fn service_account(wanted: &Wanted) -> ServiceAccount {
    ServiceAccount {
        metadata: meta(wanted, &wanted.name, MEMBER_COMPONENT),
        automount_service_account_token: Some(false),
        ..ServiceAccount::default()
    }
}
