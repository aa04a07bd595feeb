//! The code quoted in docs/understand/adding-an-actuator.md is the code of the example.

use std::{fs, path::Path};

use anyhow::{Context, Result, ensure};

#[test]
fn quoted_code_is_that_of_the_example() -> Result<()> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| fs::read_to_string(here.join(path)).with_context(|| path.to_owned());
    let page = read("../../../docs/understand/adding-an-actuator.md")?;
    let sources = read("examples/provider_example.rs")? + &read("tests/contract/example.rs")?;
    let quotes: Vec<_> = page
        .split("```rust\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .collect();
    ensure!(quotes.len() > 5, "only {} quotes were found", quotes.len());
    for quote in quotes {
        ensure!(
            sources.contains(quote),
            "this is quoted and stands nowhere:\n{quote}"
        );
    }
    let lines = read("examples/provider_example.rs")?.lines().count();
    ensure!(lines < 200, "the example has {lines} lines");
    ensure!(page.lines().count() <= 200, "the page is too long for a tutorial");
    Ok(())
}
