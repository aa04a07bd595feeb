//! The flags that the Deployment of a chart passes to a process, for a comparison with the process.

use std::{fs, path::Path};

use anyhow::{Context, Result, ensure};
use clap::{Arg, Args, Command, CommandFactory, Parser};
use serde_json::Value;

/// An integer value without a maximum in the schema counts as this maximum.
const MOST: i64 = 4_294_967_295;
/// A chart of a process with controllers has more flags at bounds. Fewer flags mean that the chart was not
/// read as intended.
const FEWEST_AT_BOUNDS: usize = 12;

/// The lines of the Deployment below `args` that begin with a flag, as `--name={{ .Values.name }}`.
fn flags_of(deployment: &str) -> impl Iterator<Item = &str> {
    let items = deployment
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- "));
    items.filter(|item| item.starts_with("--"))
}

fn read(chart: &str, file: &str) -> Result<String> {
    let charts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../charts");
    let path = charts.join(chart).join(file);
    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

/// The errors of a process about flags at the bounds of the values of the chart. A process that refuses
/// such a flag does not start with values that Helm accepts. `needed`: the name of the process, and the flags
/// that the process needs for its start.
///
/// # Errors
/// The chart has no Deployment or no schema, or too few values with bounds.
pub fn refused_bounds<P: Parser>(chart: &str, needed: &[&str]) -> Result<Vec<String>> {
    let flags = flags_at_bounds(chart)?;
    ensure!(
        flags.len() >= FEWEST_AT_BOUNDS,
        "chart {chart} has only these flags at bounds: {flags:?}"
    );
    let refused = flags.iter().filter_map(|flag| {
        let arguments = needed.iter().copied().chain([flag.as_str()]);
        let error = P::try_parse_from(arguments).err()?;
        Some(format!("{flag}: {error}"))
    });
    Ok(refused.collect())
}

/// The flags, as `--name=value`, of each integer value of a chart at the bounds of the value in
/// `values.schema.json`.
fn flags_at_bounds(chart: &str) -> Result<Vec<String>> {
    let schema: Value = serde_json::from_str(&read(chart, "values.schema.json")?)?;
    let deployment = read(chart, "templates/deployment.yaml")?;
    let mut flags = Vec::new();
    for flag in flags_of(&deployment) {
        let Some((name, path)) = flag_of_value(flag) else {
            continue;
        };
        let value = path
            .split('.')
            .fold(&schema, |schema, key| &schema["properties"][key]);
        let bounds = bounds_of(value).into_iter().flatten();
        flags.extend(bounds.map(|bound| format!("{name}={bound}")));
    }
    Ok(flags)
}

/// Name of the flag and path of the value, from `--name={{ .Values.path }}`, also with `int`.
fn flag_of_value(flag: &str) -> Option<(&str, &str)> {
    let (name, expression) = flag.split_once("={{")?;
    let expression = expression.strip_suffix("}}")?.trim();
    let value = expression.strip_prefix("int ").unwrap_or(expression);
    Some((name, value.strip_prefix(".Values.")?))
}

/// Minimum and maximum of an integer, also of an integer that may be absent.
fn bounds_of(schema: &Value) -> Option<[i64; 2]> {
    if schema["type"] == "integer" {
        let bound = |key: &str, default| schema[key].as_i64().unwrap_or(default);
        return Some([bound("minimum", i64::MIN), bound("maximum", MOST)]);
    }
    schema["anyOf"].as_array()?.iter().find_map(bounds_of)
}

/// The flags of process `P`, without `--`, that the Deployment of a chart passes in no case. The flags `L` of
/// the locks do not count.
///
/// # Errors
/// The chart has no Deployment.
pub fn unset_flags<P: CommandFactory, L: Args>(chart: &str) -> Result<Vec<String>> {
    let deployment = read(chart, "templates/deployment.yaml")?;
    let passed: Vec<&str> = flags_of(&deployment)
        .filter_map(|flag| flag.strip_prefix("--")?.split('=').next())
        .collect();
    let (all, locks) = (P::command(), L::augment_args(Command::new("locks")));
    let of_locks: Vec<&str> = locks.get_arguments().filter_map(Arg::get_long).collect();
    let own = all.get_arguments().filter_map(Arg::get_long);
    let unset = own.filter(|flag| !of_locks.contains(flag) && !passed.contains(flag));
    Ok(unset.map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_flag_is_read_with_the_path_of_its_value() {
        let deployment = "args:\n  - --a={{ .Values.b.c }}\n  - --d={{ int .Values.e }}\n  - --f=g\n  - h\n";
        let flags: Vec<_> = flags_of(deployment).map(flag_of_value).collect();
        assert_eq!(flags, [Some(("--a", "b.c")), Some(("--d", "e")), None]);
    }

    #[test]
    fn bounds_are_those_of_an_integer() {
        for (schema, bounds) in [
            (
                json!({"type": "integer", "minimum": 1, "maximum": 600}),
                Some([1, 600]),
            ),
            (json!({"type": "integer", "minimum": 0}), Some([0, MOST])),
            (
                json!({"anyOf": [{"const": null}, {"type": "integer", "minimum": 0, "maximum": 9}]}),
                Some([0, 9]),
            ),
            (json!({"type": "string", "pattern": "^a$"}), None),
            (Value::Null, None),
        ] {
            assert_eq!(bounds_of(&schema), bounds, "{schema}");
        }
    }
}
