#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;

const TABLES: &str = "\
| metric | type | labels |
|---|---|---|
| `takeovers_total` | counter | `by` |
| `loss_seconds` | histogram | |

| `result` | meaning |
|---|---|
| `success` | done |
";

fn exported(code: &str) -> Exported {
    Exported {
        series: series_of_tables(TABLES),
        code: code.to_owned(),
    }
}

fn rules(expression: &str, annotations: &Value) -> Rules {
    let alert = json!({"alert": "A", "expr": expression, "annotations": annotations,
        "labels": {"severity": "critical"}});
    let record = json!({"record": "a:b:max", "expr": "max by (seed) (x)"});
    Rules::parse(&json!({"groups": [{"rules": [record, alert]}]}))
}

#[test]
fn series_are_read_from_tables_of_metrics_only() {
    let series: Vec<_> = series_of_tables(TABLES).into_iter().collect();
    assert_eq!(
        series,
        [
            "loss_seconds_bucket",
            "loss_seconds_count",
            "loss_seconds_sum",
            "takeovers_total"
        ]
    );
}

#[test]
fn a_metric_that_no_process_exports_is_reported() {
    let found = |code: &str, expression: &str| {
        let rules = rules(expression, &Value::Null);
        exported(code).breaches("f", &[rules.alerts[0].expression.clone()], &rules.records)
    };
    let code = r#"register("takeovers", help); register("loss_seconds", help)"#;
    let expression = "increase(takeovers_total[15m]) > 0 and loss_seconds_count > 1 and a:b:max == 1";
    assert_eq!(found(code, expression), Vec::<String>::new());
    let missing = "f: misspelt_total is not in docs/look-up/metrics.md";
    assert_eq!(found(code, "misspelt_total"), [missing]);
    let removed = "f: no process registers takeovers_total";
    assert_eq!(found("", "takeovers_total"), [removed]);
    // No process of the suite exports a metric of kube-apiserver.
    assert_eq!(
        found("", "delta(apiserver_storage_size_bytes[10m]) > 1"),
        Vec::<String>::new()
    );
    assert_eq!(found("", "apiserver_storage_misspelt").len(), 1);
}

#[test]
fn a_row_of_the_tables_that_no_process_registers_is_reported() {
    let code = r#"register_with_unit("loss", Unit::Seconds)"#;
    let missing = "docs/look-up/metrics.md: no process registers takeovers_total";
    assert_eq!(exported(code).unregistered(), [missing]);
}

#[test]
fn a_label_that_no_expression_has_is_reported() {
    let faults = |summary: &str| {
        let rules = rules(
            "max by (name) (x)",
            &json!({"summary": summary, "description": "d"}),
        );
        rules.alerts[0].faults(&rules)
    };
    assert_eq!(
        faults("{{ $labels.name }} in {{ $labels.seed }}"),
        Vec::<String>::new()
    );
    assert_eq!(
        faults("{{ $labels.zone }}"),
        ["names the label zone, which no expression has"]
    );
    assert_eq!(faults(""), ["has no summary"]);
}

#[test]
fn a_runbook_that_does_not_exist_is_reported() {
    let fault = |link: &str| {
        let rules = rules("x", &json!({"runbook_url": link}));
        let page = |path: &str| (path == "operate/p.md").then(|| "## Alert A".to_owned());
        rules.alerts[0].runbook_fault(page)
    };
    assert_eq!(fault("RUNBOOK_URL/operate/p.md#alert-a"), None);
    for link in [
        "https://example.com/operate/p.md#alert-a",
        "RUNBOOK_URL/operate/q.md#alert-a",
        "RUNBOOK_URL/operate/p.md#alert-b",
        "",
    ] {
        assert!(fault(link).is_some(), "{link}");
    }
}

#[test]
fn the_queries_of_a_dashboard_are_found_at_any_depth() {
    let mut queries = Vec::new();
    collect_queries(
        &json!({"panels": [{"title": "t", "targets": [{"expr": "a"}, {"expr": "b"}]}]}),
        &mut queries,
    );
    assert_eq!(queries, ["a", "b"]);
}

#[test]
fn a_query_that_no_test_runs_is_reported() {
    let tests = "    promql_expr_test:\n      - expr: 'sum by (a) (x)'\n        eval_time: 10m\n";
    let queries = ["sum by (a) (x)".to_owned(), "x".to_owned()];
    let missing = format!("{DASHBOARD}: no test in {TESTS} runs the query x");
    assert_eq!(untested_queries(&queries, tests), [missing]);
}
