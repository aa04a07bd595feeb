//! The rights that docs/operate/provider-aws.md tells an operator to give are those that are used: no more,
//! no less.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

const PAGE: &str = include_str!("../../../../docs/operate/provider-aws.md");
/// Sid of the statement for Kubernetes' cloud-controller-manager. All remaining statements are for the
/// suite's own calls.
const CLOUD_CONTROLLER_MANAGER: &str = "CloudControllerManager";

/// Compares the policy of the page, for the suite's own calls, with the calls that were seen.
pub fn equals(seen: &BTreeMap<String, usize>) -> Result<()> {
    // STS reports the account of keys without any right.
    let seen = seen.keys().filter(|action| *action != "GetCallerIdentity");
    equals_of(seen, |sid| sid != CLOUD_CONTROLLER_MANAGER)
}

/// Compares the policy for the cloud-controller-manager with the calls of the cloud-controller-manager.
pub fn equals_of_cloud_controller_manager(calls: &[String]) -> Result<()> {
    let action = |call: &String| call.split_whitespace().next().unwrap_or_default().to_owned();
    let seen: BTreeSet<String> = calls.iter().map(action).collect();
    equals_of(seen.iter(), |sid| sid == CLOUD_CONTROLLER_MANAGER)
}

/// The page has a policy for the key of encrypted disks, with all rights that AWS's documentation names.
pub fn covers_keys_of_disks() -> Result<()> {
    let statements = statements(2)?;
    let actions: BTreeSet<&str> = actions(&statements).collect();
    let expected = [
        "kms:CreateGrant",
        "kms:Decrypt",
        "kms:DescribeKey",
        "kms:GenerateDataKeyWithoutPlaintext",
        "kms:ReEncrypt*",
    ];
    ensure!(actions == expected.into(), "{actions:?}");
    Ok(())
}

/// The statements of a policy of the page.
fn statements(number: usize) -> Result<Vec<Value>> {
    let json = PAGE
        .split("```json")
        .nth(number)
        .and_then(|rest| rest.split("```").next());
    let policy: Value = serde_json::from_str(json.context("the page has no such policy")?)?;
    let statements = policy["Statement"].as_array().context("no Statement")?;
    Ok(statements.clone())
}

fn actions<'v>(statements: impl IntoIterator<Item = &'v Value>) -> impl Iterator<Item = &'v str> {
    let listed = statements
        .into_iter()
        .filter_map(|statement| statement["Action"].as_array());
    listed.flatten().filter_map(Value::as_str)
}

fn equals_of<'s>(seen: impl Iterator<Item = &'s String>, is_meant: impl Fn(&str) -> bool) -> Result<()> {
    let statements = statements(1)?;
    let meant = statements
        .iter()
        .filter(|statement| is_meant(statement["Sid"].as_str().unwrap_or_default()));
    let allowed: BTreeSet<&str> = actions(meant)
        .filter_map(|action| action.strip_prefix("ec2:"))
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
