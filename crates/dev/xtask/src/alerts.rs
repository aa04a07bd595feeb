//! `xtask alerts`: a process exports each metric that an alert or a dashboard names. Each alert has a test, a
//! row in the page for operators and a runbook, and each query of a dashboard has a test. promtool checks the
//! rules and runs the tests.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{expressions, links, sources, values_schema};

/// The rules of each installation.
const RULES: [&str; 2] = ["charts/garden/files/rules.yaml", "charts/seed/files/rules.yaml"];
const DASHBOARD: &str = "charts/garden/files/dashboard.json";
/// The tables of all metrics.
const METRICS: &str = "docs/look-up/metrics.md";
/// The page for operators with a row for each alert.
const PAGE: &str = "docs/operate/monitoring.md";
/// Tests for promtool.
const TESTS: &str = "tests/alerts";
/// Metrics of the gates and of the follower of etcd-backup-restore: the process composes the names.
const COMPOSED: [&str; 3] = ["etcdbr_gate_", "etcdbr_events_gate_", "etcdbr_follow_"];
/// Metrics of kube-apiserver and of HAProxy, the edge, in rules and dashboards. Kubernetes keeps the names of
/// stable metrics.
const OF_OTHER_PROJECTS: [&str; 4] = [
    "apiserver_longrunning_requests",
    "apiserver_storage_size_bytes",
    "haproxy_backend_connection_errors_total",
    "haproxy_frontend_requests_denied_total",
];
/// The text that the chart replaces by `monitoring.runbookURL`, with a slash.
const PREFIX: &str = "RUNBOOK_URL/";

/// Fails with a line for each breach.
pub fn run() -> Result<()> {
    let root = Path::new(".");
    let (mut breaches, mut count) = (Vec::new(), 0);
    let exported = Exported::read(root)?;
    breaches.extend(exported.unregistered());
    let page = read(&root.join(PAGE))?;
    let tests = texts(&sources::files_below(vec![root.join(TESTS)], "yaml")?)?;
    for file in RULES {
        let rules = Rules::parse(&values_schema::read(&root.join(file))?);
        breaches.extend(exported.breaches(file, &rules.expressions(), &rules.records));
        for alert in &rules.alerts {
            let mut found = alert.faults(&rules);
            found.extend(alert.runbook_fault(|page| fs::read_to_string(root.join("docs").join(page)).ok()));
            if !tests.contains(&alert.name) {
                found.push(format!("has no test in {TESTS}"));
            }
            if !page.contains(&format!("`{}`", alert.name)) {
                found.push(format!("has no row in {PAGE}"));
            }
            breaches.extend(
                found
                    .iter()
                    .map(|fault| format!("{file}: {} {fault}", alert.name)),
            );
        }
        count += rules.alerts.len();
    }
    let dashboard: Value = serde_json::from_str(&read(&root.join(DASHBOARD))?).context(DASHBOARD)?;
    let mut queries = Vec::new();
    collect_queries(&dashboard, &mut queries);
    breaches.extend(exported.breaches(DASHBOARD, &queries, &BTreeSet::new()));
    breaches.extend(untested_queries(&queries, &tests));
    for breach in &breaches {
        eprintln!("alerts: {breach}");
    }
    if !breaches.is_empty() {
        bail!("{} fault(s) in alerts and dashboards", breaches.len());
    }
    println!("alerts: ok ({count} alerts, {} queries)", queries.len());
    Ok(())
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| path.display().to_string())
}

fn texts(files: &[PathBuf]) -> Result<String> {
    let mut all = String::new();
    for file in files {
        all.push_str(&read(file)?);
    }
    Ok(all)
}

/// The metrics of all processes.
struct Exported {
    /// The names of all series in the tables.
    series: BTreeSet<String>,
    /// All sources of processes.
    code: String,
}

impl Exported {
    fn read(root: &Path) -> Result<Self> {
        let mut files = sources::files_below(vec![root.join("crates")], "rs")?;
        files.retain(|file| {
            let path = file.to_string_lossy();
            path.contains("/src/") && !path.contains("/xtask/")
        });
        Ok(Self {
            series: series_of_tables(&read(&root.join(METRICS))?),
            code: texts(&files)?,
        })
    }

    /// A line for each row of the tables that no process registers.
    fn unregistered(&self) -> Vec<String> {
        let is_composed = |name: &str| COMPOSED.iter().any(|start| name.starts_with(start));
        let missing = self
            .series
            .iter()
            .filter(|name| !is_composed(name) && !self.is_registered(name));
        missing
            .map(|name| format!("{METRICS}: no process registers {name}"))
            .collect()
    }

    /// A line for each name that is no metric. `records`: the names that recording rules define.
    fn breaches(&self, file: &str, expressions: &[String], records: &BTreeSet<String>) -> Vec<String> {
        let mut breaches = Vec::new();
        for expression in expressions {
            for name in expressions::metric_names(expression) {
                if records.contains(&name) || OF_OTHER_PROJECTS.contains(&name.as_str()) {
                    continue;
                }
                if !self.series.contains(&name) {
                    breaches.push(format!("{file}: {name} is not in {METRICS}"));
                } else if !self.is_registered(&name) {
                    breaches.push(format!("{file}: no process registers {name}"));
                }
            }
        }
        breaches
    }

    /// Whether a source has the name as a string, without the prefix of a registry and the end of a type or
    /// unit.
    fn is_registered(&self, series: &str) -> bool {
        let name = series.strip_prefix("etcdbr_").unwrap_or(series);
        let types = ["", "_total", "_bucket", "_sum", "_count"];
        let names = types.iter().filter_map(|end| name.strip_suffix(*end));
        let mut names = names.flat_map(|name| [Some(name), name.strip_suffix("_seconds")]);
        names.any(|name| name.is_some_and(|name| self.code.contains(&format!("\"{name}\""))))
    }
}

/// The series of all tables with the first column `metric`.
fn series_of_tables(page: &str) -> BTreeSet<String> {
    let mut series = BTreeSet::new();
    let mut is_table = false;
    for line in page.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let first = cells.get(1).copied().unwrap_or_default();
        if first.is_empty() {
            is_table = false;
        } else if first == "metric" {
            is_table = true;
        }
        let name = first.strip_prefix('`').and_then(|name| name.strip_suffix('`'));
        let Some(name) = name.filter(|_| is_table) else {
            continue;
        };
        if cells.contains(&"histogram") {
            series.extend(["_bucket", "_sum", "_count"].map(|end| format!("{name}{end}")));
        } else {
            series.insert(name.to_owned());
        }
    }
    series
}

/// A line for each query that no test for promtool runs. `tests`: the texts of all tests.
fn untested_queries(queries: &[String], tests: &str) -> Vec<String> {
    let untested = queries
        .iter()
        .filter(|query| !tests.contains(&format!("- expr: '{query}'\n")));
    untested
        .map(|query| format!("{DASHBOARD}: no test in {TESTS} runs the query {query}"))
        .collect()
}

/// All queries of a dashboard: the texts with the key `expr`.
fn collect_queries(value: &Value, queries: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, below) in map {
                match below.as_str().filter(|_| key == "expr") {
                    Some(query) => queries.push(query.to_owned()),
                    None => collect_queries(below, queries),
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|below| collect_queries(below, queries)),
        _ => {}
    }
}

/// The rules of a file.
#[derive(Default)]
struct Rules {
    alerts: Vec<AlertRule>,
    records: BTreeSet<String>,
    recorded: Vec<String>,
}

struct AlertRule {
    name: String,
    expression: String,
    severity: String,
    /// The texts by the name of the annotation.
    annotations: Value,
}

impl Rules {
    fn parse(file: &Value) -> Self {
        let mut rules = Self::default();
        let groups = file["groups"].as_array().into_iter().flatten();
        for rule in groups.flat_map(|group| group["rules"].as_array().into_iter().flatten()) {
            let text = |key: &str| rule[key].as_str().unwrap_or_default().to_owned();
            if rule.get("alert").is_some() {
                rules.alerts.push(AlertRule {
                    name: text("alert"),
                    expression: text("expr"),
                    severity: rule["labels"]["severity"].as_str().unwrap_or_default().to_owned(),
                    annotations: rule["annotations"].clone(),
                });
            } else {
                rules.records.insert(text("record"));
                rules.recorded.push(text("expr"));
            }
        }
        rules
    }

    /// The expressions of all rules.
    fn expressions(&self) -> Vec<String> {
        let of_alerts = self.alerts.iter().map(|alert| alert.expression.clone());
        of_alerts.chain(self.recorded.iter().cloned()).collect()
    }
}

impl AlertRule {
    fn annotation(&self, name: &str) -> &str {
        self.annotations[name].as_str().unwrap_or_default()
    }

    /// Missing parts, and labels that no expression has.
    fn faults(&self, rules: &Rules) -> Vec<String> {
        let mut faults = Vec::new();
        if !["critical", "warning"].contains(&self.severity.as_str()) {
            faults.push("has neither severity critical nor severity warning".to_owned());
        }
        let mut known = self.expression.clone();
        known.extend(rules.recorded.iter().map(String::as_str));
        for name in ["summary", "description"] {
            let text = self.annotation(name);
            if text.is_empty() {
                faults.push(format!("has no {name}"));
            }
            for label in text.split("$labels.").skip(1) {
                let end = label.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
                let label = &label[..end.unwrap_or(label.len())];
                if !known.contains(label) {
                    faults.push(format!("names the label {label}, which no expression has"));
                }
            }
        }
        faults
    }

    /// The fault of the link to the runbook. `page` reads a page below docs/.
    fn runbook_fault(&self, page: impl Fn(&str) -> Option<String>) -> Option<String> {
        let link = self.annotation("runbook_url");
        let Some((path, fragment)) = link.strip_prefix(PREFIX).and_then(|link| link.split_once('#')) else {
            return Some(format!(
                "needs a runbook_url of the form {PREFIX}PAGE#SECTION, not {link:?}"
            ));
        };
        match page(path) {
            None => Some(format!("links to docs/{path}, which does not exist")),
            Some(text) if links::fragments(&text).contains(fragment) => None,
            Some(_) => Some(format!("links to no heading of docs/{path}: {fragment}")),
        }
    }
}

#[cfg(test)]
#[path = "alerts_tests.rs"]
mod tests;
