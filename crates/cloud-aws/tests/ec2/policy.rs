//! The rights that docs/operate/provider-aws.md tells an operator to give are those that are used: no more,
//! no less.

#![allow(dead_code)] // each test program uses its own part of it

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

const PAGE: &str = include_str!("../../../../docs/operate/provider-aws.md");
/// Sid of the statement for Kubernetes' cloud-controller-manager. All other statements are for the suite's
/// own calls.
const CLOUD_CONTROLLER_MANAGER: &str = "CloudControllerManager";

/// Compares the policy of the page, for the suite's own calls, with the calls that were seen.
pub fn equals(seen: &BTreeMap<String, usize>) -> Result<()> {
    // STS reports the account of keys without any right.
    let seen = seen.keys().filter(|action| *action != "GetCallerIdentity");
    equals_of(seen, |sid| sid != CLOUD_CONTROLLER_MANAGER)
}

/// Compares the policy for the cloud-controller-manager with its calls.
pub fn equals_of_cloud_controller_manager(calls: &[String]) -> Result<()> {
    let action = |call: &String| call.split_whitespace().next().unwrap_or_default().to_owned();
    let seen: BTreeSet<String> = calls.iter().map(action).collect();
    equals_of(seen.iter(), |sid| sid == CLOUD_CONTROLLER_MANAGER)
}

fn equals_of<'s>(seen: impl Iterator<Item = &'s String>, is_meant: impl Fn(&str) -> bool) -> Result<()> {
    let json = PAGE
        .split("```json")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    let policy: Value = serde_json::from_str(json.context("the page has no policy")?)?;
    let statements = policy["Statement"].as_array().context("no Statement")?;
    let actions = statements
        .iter()
        .filter(|statement| is_meant(statement["Sid"].as_str().unwrap_or_default()))
        .filter_map(|statement| statement["Action"].as_array())
        .flatten();
    let allowed: BTreeSet<&str> = actions
        .filter_map(|action| action.as_str()?.strip_prefix("ec2:"))
        .collect();
    let seen: BTreeSet<&str> = seen.map(String::as_str).collect();
    let missing: Vec<_> = seen.difference(&allowed).collect();
    let unused: Vec<_> = allowed.difference(&seen).collect();
    ensure!(
        missing.is_empty() && unused.is_empty(),
        "the policy lacks {missing:?}, and nobody uses {unused:?}"
    );
    Ok(())
}
