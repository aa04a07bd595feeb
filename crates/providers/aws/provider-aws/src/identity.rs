//! The identity of a Shoot in an account.

use api::extensions::{Cluster, ExtensionObject};
use cloud_aws::{
    identity::CONFIRMED_ACCOUNT,
    infrastructure::{InfrastructureStatus, Names},
};
use extension::Context;
use runtime::Result;

/// The names of the objects of a Shoot, with the uid of the Shoot.
///
/// # Errors
/// The object has no namespace.
pub fn names<K: ExtensionObject>(context: &Context<K>) -> Result<Names> {
    let uid = context.cluster.as_ref().and_then(shoot_uid);
    Ok(Names::for_cluster(&context.namespace()?).of_shoot(uid))
}

/// The account that the user has confirmed by an annotation of the Shoot. A recorded account counts before
/// this account.
pub fn confirmed_account(cluster: Option<&Cluster>) -> Option<&str> {
    let annotations = cluster?.spec.shoot.0.pointer("/metadata/annotations")?;
    let account = annotations.get(CONFIRMED_ACCOUNT)?.as_str()?;
    Some(account).filter(|account| !account.is_empty())
}

/// The account with the network: the recorded account, or the account that the user has confirmed.
pub fn account_of(infrastructure: &InfrastructureStatus, cluster: Option<&Cluster>) -> Option<String> {
    let recorded = infrastructure.account_id.as_deref();
    recorded.or_else(|| confirmed_account(cluster)).map(str::to_owned)
}

/// The uid of the Shoot that survives each move: the uid of the first reconciliation. A garden that was
/// restored from a backup keeps this uid in the status of the Shoot.
pub fn shoot_uid(cluster: &Cluster) -> Option<&str> {
    let uid = |path| cluster.spec.shoot.0.pointer(path).and_then(|uid| uid.as_str());
    let uids = [uid("/status/uid"), uid("/metadata/uid")];
    uids.into_iter().flatten().find(|uid| !uid.is_empty())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn cluster(shoot: &Value) -> Cluster {
        let spec = json!({"cloudProfile": {}, "seed": {}, "shoot": shoot});
        let mut object = json!({"metadata": {"name": "shoot--dev--one"}, "spec": spec});
        object["apiVersion"] = "extensions.gardener.cloud/v1alpha1".into();
        object["kind"] = "Cluster".into();
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn a_recorded_account_counts_before_a_confirmed_account() {
        let confirmed = cluster(&json!({"metadata": {"annotations": {CONFIRMED_ACCOUNT: "2"}}}));
        let empty = cluster(&json!({"metadata": {"annotations": {CONFIRMED_ACCOUNT: ""}}}));
        for (recorded, cluster, account) in [
            (Some("1"), Some(&confirmed), Some("1")),
            (None, Some(&confirmed), Some("2")),
            (None, Some(&empty), None),
            (None, None, None),
        ] {
            let infrastructure = InfrastructureStatus {
                account_id: recorded.map(str::to_owned),
                ..InfrastructureStatus::default()
            };
            let found = account_of(&infrastructure, cluster);
            assert_eq!(found.as_deref(), account, "{recorded:?}");
        }
    }

    #[test]
    fn the_uid_of_the_first_reconciliation_counts() {
        for (shoot, uid) in [
            (json!({}), None),
            (json!({"metadata": {"uid": "new"}}), Some("new")),
            (
                json!({"metadata": {"uid": "new"}, "status": {"uid": ""}}),
                Some("new"),
            ),
            (
                json!({"metadata": {"uid": "new"}, "status": {"uid": "first"}}),
                Some("first"),
            ),
        ] {
            assert_eq!(shoot_uid(&cluster(&shoot)), uid, "{shoot}");
        }
    }
}
