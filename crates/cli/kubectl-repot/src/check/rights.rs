//! Checks of the rights of the caller, by SelfSubjectAccessReviews.

use futures::{StreamExt, stream};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::{Api, api::PostParams};
use runtime::client::Cluster;

use super::report::{CheckLevel, CheckLine};
use crate::{failure::Failure, session::Session};

/// Reviews at a time.
const REVIEWS: usize = 8;
const CORE: &str = "core.gardener.cloud";

/// A right, and the use of the right.
#[derive(Clone, Copy, Debug)]
struct Right {
    verb: &'static str,
    group: &'static str,
    /// The resource, with the subresource behind a slash.
    resource: &'static str,
    /// Whether the right concerns the namespace of the caller only.
    is_namespaced: bool,
    needed_for: &'static str,
    /// The result without the right.
    without: CheckLevel,
}

const fn operates(verb: &'static str, resource: &'static str, needed_for: &'static str) -> Right {
    Right {
        verb,
        group: CORE,
        resource,
        is_namespaced: true,
        needed_for,
        without: CheckLevel::Warn,
    }
}

const fn across(right: Right) -> Right {
    Right {
        is_namespaced: false,
        ..right
    }
}

const fn required(right: Right) -> Right {
    Right {
        without: CheckLevel::Fail,
        ..right
    }
}

const fn installs(group: &'static str, resource: &'static str) -> Right {
    required(across(Right {
        group,
        ..operates("create", resource, "helm install")
    }))
}

/// Rights of the commands of the plugin.
const TO_OPERATE: [Right; 10] = [
    required(operates("get", "shoots", "each command")),
    required(operates("list", "shoots", "status")),
    operates("watch", "shoots", "plan, move --wait, watch"),
    operates("patch", "shoots", "plan, move, cancel"),
    operates("update", "shoots/binding", "move, cancel, drain, takeover"),
    operates("force-restore", "shoots", "takeover"),
    across(operates("list", "shoots", "status -A, drain, takeover --seed")),
    across(operates("get", "seeds", "drain, takeover")),
    across(operates("list", "seeds", "check, version, status --seeds")),
    across(operates("patch", "seeds", "cordon, drain")),
];

/// Rights of an installation of the charts.
const TO_INSTALL: [Right; 7] = [
    installs("", "namespaces"),
    installs("apiextensions.k8s.io", "customresourcedefinitions"),
    installs("admissionregistration.k8s.io", "validatingadmissionpolicies"),
    installs(
        "admissionregistration.k8s.io",
        "validatingadmissionpolicybindings",
    ),
    installs("rbac.authorization.k8s.io", "clusterroles"),
    installs("rbac.authorization.k8s.io", "clusterrolebindings"),
    installs("apps", "deployments"),
];

/// The rights to use the plugin.
pub(super) async fn to_operate(session: &Session) -> Vec<CheckLine> {
    Box::pin(review_all(session, &TO_OPERATE)).await
}

/// The rights to install the suite.
pub(super) async fn to_install(session: &Session) -> Vec<CheckLine> {
    Box::pin(review_all(session, &TO_INSTALL)).await
}

async fn review_all(session: &Session, rights: &[Right]) -> Vec<CheckLine> {
    let reviews = rights.iter().map(|right| Box::pin(review(session, *right)));
    stream::iter(reviews).buffered(REVIEWS).collect().await
}

async fn review(session: &Session, right: Right) -> CheckLine {
    let (resource, subresource) = match right.resource.split_once('/') {
        Some((resource, subresource)) => (resource, Some(subresource.to_owned())),
        None => (right.resource, None),
    };
    let question = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                verb: Some(right.verb.to_owned()),
                group: Some(right.group.to_owned()),
                resource: Some(resource.to_owned()),
                subresource,
                namespace: right.is_namespaced.then(|| session.namespace().to_owned()),
                ..ResourceAttributes::default()
            }),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let reviews: Api<SelfSubjectAccessReview> = session.garden().cluster_wide();
    let params = PostParams::default();
    let doing = format!("the right to {} {} cannot be checked", right.verb, right.resource);
    let request = reviews.create(&params, &question);
    let answer = Box::pin(session.request(&doing, request)).await;
    judge(
        right,
        session.namespace(),
        answer.map(|review| review.status.is_some_and(|status| status.allowed)),
    )
}

fn judge(right: Right, namespace: &str, allowed: Result<bool, Failure>) -> CheckLine {
    let place = if right.is_namespaced {
        format!("in namespace {namespace}")
    } else {
        "in the whole garden".to_owned()
    };
    let name = format!(
        "{} {} {place} (for {})",
        right.verb, right.resource, right.needed_for
    );
    match allowed {
        Err(failure) => CheckLine::unreadable(&failure),
        Ok(true) => CheckLine::ok(format!("you may {name}")),
        Ok(false) => CheckLine {
            level: right.without,
            ..CheckLine::warn(
                format!("you may not {name}"),
                "ask the operator of the garden for a role with this right",
            )
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_right_names_the_commands() {
        let line = judge(TO_OPERATE[9], "garden-dev", Ok(false));
        assert_eq!(line.level, CheckLevel::Warn);
        assert_eq!(
            line.message,
            "you may not patch seeds in the whole garden (for cordon, drain)"
        );
        assert_eq!(judge(TO_OPERATE[0], "n", Ok(false)).level, CheckLevel::Fail);
        assert_eq!(judge(TO_INSTALL[0], "n", Ok(false)).level, CheckLevel::Fail);
        assert_eq!(judge(TO_INSTALL[0], "n", Ok(true)).level, CheckLevel::Ok);
        let unknown = judge(TO_OPERATE[0], "n", Err(Failure::failed("no answer")));
        assert_eq!(unknown.level, CheckLevel::Warn);
    }
}
