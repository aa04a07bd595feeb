//! The identity of the pods, without rights in the API: no container in the pods uses the API.

use k8s_openapi::api::core::v1::ServiceAccount;

use super::meta;
use crate::{names::MEMBER_COMPONENT, wanted::ValidatedEtcd};

/// The ServiceAccount of an Etcd's pods.
#[must_use]
pub fn service_account(wanted: &ValidatedEtcd) -> ServiceAccount {
    ServiceAccount {
        metadata: meta(wanted, &wanted.name, MEMBER_COMPONENT),
        automount_service_account_token: Some(false),
        ..ServiceAccount::default()
    }
}
