//! The rights that processes grant at run time: the rules of roles in the sources.
//!
//! Such a rule is a JSON literal with `apiGroups`, `resources` and `verbs`. A literal outside of the listed
//! functions fails the check, so that the page has all roles.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::{Context, Result, bail};
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use syn::visit::{self, Visit};

use super::{
    items::is_shipped,
    policy_rule::{PolicyRule, Right, RightHolder},
    shapes::Cluster,
};
use crate::sources::files_below;

/// A function that makes rules, the process that gets the rights, and the place of the rights.
pub struct Grant {
    pub process: &'static str,
    pub cluster: Cluster,
    /// The namespace of the binding. Empty: the whole cluster.
    pub namespace: &'static str,
    pub file: &'static str,
    pub function: &'static str,
}

impl Grant {
    fn holder(&self) -> RightHolder {
        RightHolder {
            process: self.process.to_owned(),
            cluster: self.cluster,
            namespace: Some(self.namespace.to_owned()).filter(|name| !name.is_empty()),
            file: self.file.to_owned(),
        }
    }
}

const GRANTS: &[Grant] = &[
    Grant {
        process: "gardenlet",
        cluster: Cluster::Garden,
        namespace: "of a project or of the seed",
        file: "crates/core/garden-controller-manager/src/shoot_state/grants.rs",
        function: "rules",
    },
    Grant {
        process: "machine-controller-manager",
        cluster: Cluster::Seed,
        namespace: "of the shoot",
        file: "crates/core/extension/src/worker/manager.rs",
        function: "role",
    },
    Grant {
        process: "machine-controller-manager",
        cluster: Cluster::Shoot,
        namespace: "",
        file: "crates/core/parts/src/nodes/rights.rs",
        function: "machines_role",
    },
    Grant {
        process: "machine-controller-manager",
        cluster: Cluster::Shoot,
        namespace: "kube-system",
        file: "crates/core/parts/src/nodes/rights.rs",
        function: "tokens",
    },
    Grant {
        process: "cloud-controller-manager",
        cluster: Cluster::Shoot,
        namespace: "",
        file: "crates/core/parts/src/controllers/controller_leaders/rights.rs",
        function: "deploy_cloud_controller_manager_rights",
    },
    Grant {
        process: "cloud-controller-manager",
        cluster: Cluster::Shoot,
        namespace: "kube-system",
        file: "crates/core/parts/src/controllers/controller_leaders/rights.rs",
        function: "deploy_lock",
    },
    Grant {
        process: "network-local",
        cluster: Cluster::Shoot,
        namespace: "",
        file: "crates/local-cloud/provider-local/src/network/objects.rs",
        function: "",
    },
    Grant {
        process: "CoreDNS",
        cluster: Cluster::Shoot,
        namespace: "",
        file: "crates/core/parts/src/system_components/coredns.rs",
        function: "",
    },
];

/// Name in the place of names that are known at run time only.
const AT_RUN_TIME: &str = "…";

/// The rights that the sources below `root` grant.
pub fn rights(root: &Path) -> Result<BTreeSet<Right>> {
    let mut rights = BTreeSet::new();
    let mut found = BTreeSet::new();
    for file in files_below(vec![root.join("crates")], "rs")? {
        let shown = file.strip_prefix(root).unwrap_or(&file).display().to_string();
        if !is_shipped(&shown) {
            continue;
        }
        let text = fs::read_to_string(&file).with_context(|| shown.clone())?;
        if !text.contains("\"apiGroups\"") {
            continue;
        }
        for (function, rules) in in_file(&text).with_context(|| shown.clone())? {
            let is_here = |grant: &&Grant| {
                grant.file == shown && (grant.function.is_empty() || grant.function == function)
            };
            let Some(grant) = GRANTS.iter().find(is_here) else {
                bail!(
                    "{shown}: {function} makes rules of a role; add the process that gets the rights to {}",
                    file!()
                );
            };
            found.insert((grant.file, grant.function));
            let holder = grant.holder();
            rights.extend(rules.iter().flat_map(|rule| holder.expand(rule)));
        }
    }
    for grant in GRANTS {
        if !found.contains(&(grant.file, grant.function)) {
            bail!(
                "{} has no rules in {}; remove the line from {}",
                grant.file,
                grant.function,
                file!()
            );
        }
    }
    Ok(rights)
}

/// The rules in each function of a file.
fn in_file(text: &str) -> Result<Vec<(String, Vec<PolicyRule>)>> {
    let file = syn::parse_file(text)?;
    let mut functions = Functions::default();
    functions.visit_file(&file);
    let mut lists = BTreeMap::new();
    let mut all = Vec::new();
    for (_, body) in &functions.bodies {
        lists_in(body.clone(), &mut lists);
    }
    lists.extend(functions.constants);
    for (name, body) in functions.bodies {
        let mut groups = Vec::new();
        rules_in(body, &mut groups);
        let rules: Result<Vec<PolicyRule>> = groups.iter().map(|group| rule(group, &lists)).collect();
        let rules = rules.with_context(|| name.clone())?;
        if !rules.is_empty() {
            all.push((name, rules));
        }
    }
    Ok(all)
}

#[derive(Default)]
struct Functions {
    bodies: Vec<(String, TokenStream)>,
    constants: BTreeMap<String, Vec<String>>,
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        let body = &item.block;
        self.bodies
            .push((item.sig.ident.to_string(), quote::quote!(#body)));
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        let body = &item.block;
        self.bodies
            .push((item.sig.ident.to_string(), quote::quote!(#body)));
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        if let syn::Expr::Lit(syn::ExprLit {
            lit: syn::Lit::Str(text),
            ..
        }) = &*item.expr
        {
            self.constants.insert(item.ident.to_string(), vec![text.value()]);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if item.ident != "tests" {
            visit::visit_item_mod(self, item);
        }
    }
}

/// The local lists of texts: `let NAME = ["…", …];`.
fn lists_in(code: TokenStream, lists: &mut BTreeMap<String, Vec<String>>) {
    let tokens: Vec<TokenTree> = code.into_iter().collect();
    for (index, token) in tokens.iter().enumerate() {
        if let TokenTree::Group(group) = token {
            lists_in(group.stream(), lists);
            if let [
                TokenTree::Ident(word),
                TokenTree::Ident(name),
                TokenTree::Punct(_),
            ] = &tokens[index.saturating_sub(3)..index]
                && word == "let"
                && group.delimiter() == Delimiter::Bracket
                && let Some(texts) = texts_of(group)
            {
                lists.insert(name.to_string(), texts);
            }
        }
    }
}

/// The objects with the keys `apiGroups` and `verbs`.
fn rules_in(code: TokenStream, rules: &mut Vec<Group>) {
    for token in code {
        if let TokenTree::Group(group) = token {
            let has = |key: &str| {
                let mut tokens = group.stream().into_iter();
                tokens.any(|token| matches!(token, TokenTree::Literal(text) if text.to_string() == key))
            };
            // A rule of an admission policy has the key `apiGroups`, and no verbs.
            let is_rule = group.delimiter() == Delimiter::Brace && has("\"apiGroups\"") && has("\"verbs\"");
            if is_rule {
                rules.push(group);
            } else {
                rules_in(group.stream(), rules);
            }
        }
    }
}

fn rule(group: &Group, lists: &BTreeMap<String, Vec<String>>) -> Result<PolicyRule> {
    let mut rule = PolicyRule::default();
    let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
    for part in tokens.split(|token| matches!(token, TokenTree::Punct(sign) if sign.as_char() == ',')) {
        let [TokenTree::Literal(key), _, value @ ..] = part else {
            continue;
        };
        let texts = match value {
            [TokenTree::Group(group)] => texts(group, lists),
            [TokenTree::Ident(name)] => lists.get(&name.to_string()).cloned(),
            _ => None,
        };
        let key = key.to_string();
        match (key.as_str(), texts) {
            ("\"apiGroups\"", Some(texts)) => rule.api_groups = texts,
            ("\"resources\"", Some(texts)) => rule.resources = texts,
            ("\"verbs\"", Some(texts)) => rule.verbs = texts,
            ("\"resourceNames\"", texts) => {
                rule.resource_names = texts.unwrap_or_else(|| vec![AT_RUN_TIME.to_owned()]);
            }
            _ => bail!("{key} of a rule has a value that is no list of texts"),
        }
    }
    Ok(rule)
}

fn texts_of(group: &Group) -> Option<Vec<String>> {
    texts(group, &BTreeMap::new())
}

/// The texts of a list. A name in the list stands for the constant of this name.
fn texts(group: &Group, lists: &BTreeMap<String, Vec<String>>) -> Option<Vec<String>> {
    let mut texts = Vec::new();
    for token in group.stream() {
        match token {
            TokenTree::Literal(text) => texts.push(text.to_string().trim_matches('"').to_owned()),
            TokenTree::Ident(name) => texts.extend(lists.get(&name.to_string())?.clone()),
            TokenTree::Punct(sign) if sign.as_char() == ',' => {}
            _ => return None,
        }
    }
    Some(texts)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn rules_are_read_with_their_lists_and_constants() {
        let text = r#"
            const GROUP: &str = "apps";
            fn role(lock: &str) -> Value {
                let all = ["get", "list"];
                json!({"rules": [
                    {"apiGroups": [GROUP], "resources": ["deployments"], "verbs": all},
                    {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [lock], "verbs": ["get"]},
                ]})
            }
        "#;
        let found = in_file(text).unwrap();
        let (function, rules) = &found[0];
        assert_eq!(function, "role");
        assert_eq!(rules[0].api_groups, ["apps"]);
        assert_eq!(rules[0].verbs, ["get", "list"]);
        assert_eq!(rules[1].resource_names, [AT_RUN_TIME]);
    }

    #[test]
    fn a_rule_that_cannot_be_read_is_an_error() {
        let text = r#"fn role() { json!({"apiGroups": groups(), "resources": [], "verbs": []}) }"#;
        assert!(in_file(text).is_err());
    }
}
