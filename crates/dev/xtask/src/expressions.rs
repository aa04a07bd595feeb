//! The names of metrics in an expression of PromQL. No parser: promtool checks the syntax.

use std::collections::BTreeSet;

/// Words before a list of labels.
const BEFORE_LABELS: &[&str] = &["by", "without", "on", "ignoring", "group_left", "group_right"];

/// Words between operands.
const OPERATORS: &[&str] = &["and", "or", "unless", "bool", "offset", "inf", "nan"];

/// All names of metrics in an expression.
pub fn metric_names(expression: &str) -> BTreeSet<String> {
    let tokens = tokens(&without_selectors(expression));
    let mut names = BTreeSet::new();
    let mut index = 0;
    while let Some(token) = tokens.get(index) {
        index += 1;
        let next = tokens.get(index).map(String::as_str).unwrap_or_default();
        if BEFORE_LABELS.contains(&token.as_str()) {
            if next == "(" {
                index += tokens[index..].iter().take_while(|token| *token != ")").count();
            }
            continue;
        }
        let is_word = token.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == ':');
        // A function, or an aggregation with the labels first.
        let is_called = matches!(next, "(" | "by" | "without");
        if is_word && !is_called && !OPERATORS.contains(&token.to_lowercase().as_str()) {
            names.insert(token.clone());
        }
    }
    names
}

/// The expression without strings, label selectors and ranges.
fn without_selectors(expression: &str) -> String {
    let mut kept = String::new();
    let (mut quote, mut depth) = (None, 0_u32);
    for c in expression.chars() {
        match (quote, c) {
            (Some(open), _) => {
                if c == open {
                    quote = None;
                }
            }
            (None, '"' | '\'' | '`') => quote = Some(c),
            (None, '{' | '[') => {
                depth += 1;
                kept.push(' ');
            }
            (None, '}' | ']') => depth = depth.saturating_sub(1),
            (None, _) if depth == 0 => kept.push(c),
            (None, _) => {}
        }
    }
    kept
}

/// Words, numbers and single signs.
fn tokens(text: &str) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '.');
    let mut tokens: Vec<String> = Vec::new();
    let mut continues = false;
    for c in text.chars() {
        match tokens.last_mut().filter(|_| continues && is_part(c)) {
            Some(last) => last.push(c),
            None if !c.is_whitespace() => tokens.push(c.to_string()),
            None => {}
        }
        continues = is_part(c);
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_neither_functions_nor_labels() {
        let cases: [(&str, &[&str]); 6] = [
            (
                r#"max by (seed) (seed_condition{condition="GardenletReady"}) == 1"#,
                &["seed_condition"],
            ),
            ("sum(increase(losses_total[15m])) > 30 * 86400", &["losses_total"]),
            (
                "a:required:max == 1 unless on (namespace, pod) a:age:min < 900",
                &["a:age:min", "a:required:max"],
            ),
            (
                r#"absent(synced{controller="a(b) by x"} == 1) or time() - up offset 5m"#,
                &["synced", "up"],
            ),
            ("sum(rate(x_bucket[5m])) by (le)", &["x_bucket"]),
            ("a * on (pod) group_left (version) build", &["a", "build"]),
        ];
        for (expression, names) in cases {
            let found: Vec<_> = metric_names(expression).into_iter().collect();
            assert_eq!(found, names, "{expression}");
        }
    }
}
