//! The rights that docs/provider-aws.md tells an operator to give are those that are used: no more, no less.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

const PAGE: &str = include_str!("../../../../docs/provider-aws.md");

/// Compares the policy of the page with the calls that were seen.
pub fn equals(seen: &BTreeMap<String, usize>) -> Result<()> {
    let json = PAGE
        .split("```json")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    let policy: Value = serde_json::from_str(json.context("the page has no policy")?)?;
    let statements = policy["Statement"].as_array().context("no Statement")?;
    let actions = statements
        .iter()
        .filter_map(|statement| statement["Action"].as_array())
        .flatten();
    let allowed: BTreeSet<&str> = actions
        .filter_map(|action| action.as_str()?.strip_prefix("ec2:"))
        .collect();
    let seen: BTreeSet<&str> = seen.keys().map(String::as_str).collect();
    let missing: Vec<_> = seen.difference(&allowed).collect();
    let unused: Vec<_> = allowed.difference(&seen).collect();
    ensure!(
        missing.is_empty() && unused.is_empty(),
        "the policy lacks {missing:?}, and nobody uses {unused:?}"
    );
    Ok(())
}
