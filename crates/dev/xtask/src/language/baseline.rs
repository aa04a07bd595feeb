//! The baseline: breaches that are still there.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context, Result};
use serde_json::{Value, json};

/// Where the baseline is, from the root of the repository.
pub const BASELINE: &str = "crates/dev/xtask/language.yaml";

const HEADER: &str = "\
# Breaches of the project's language that are still there (docs/understand/language.md). A number may only fall:
# `cargo run -p xtask -- language --lower` writes the numbers that fell.
#
# vagueWords       tenths of a word per 100 words of comment that stand for a noun, per crate; the aim is 35
# wideComments     lines of comments of more than 110 columns, per crate
# stoppedNames     public types and functions with a name of the stop list, per crate
# weakDescriptions fields without a sentence of 20 characters, or with a default that is not named, per CRD
# longSentences    sentences of more than 25 words, per page
";

type Numbers = BTreeMap<String, u64>;

/// Numbers of breaches, by the name of a crate or the path of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Baseline {
    pub vague_words: Numbers,
    pub wide_comments: Numbers,
    pub stopped_names: Numbers,
    pub weak_descriptions: Numbers,
    pub long_sentences: Numbers,
}

impl Baseline {
    /// Parses a baseline in the format of [`Baseline::render`].
    pub fn parse(yaml: &str) -> Result<Self> {
        let value: Value =
            serde_yaml_ng::from_str(yaml).context("the baseline of the language is not valid YAML")?;
        let numbers = |key: &str| -> Result<Numbers> {
            serde_json::from_value(value.get(key).cloned().unwrap_or_else(|| json!({})))
                .with_context(|| format!("{key} of the baseline of the language has to map names to numbers"))
        };
        Ok(Self {
            vague_words: numbers("vagueWords")?,
            wide_comments: numbers("wideComments")?,
            stopped_names: numbers("stoppedNames")?,
            weak_descriptions: numbers("weakDescriptions")?,
            long_sentences: numbers("longSentences")?,
        })
    }

    /// The baseline as YAML. Entries of zero are left out.
    pub fn render(&self) -> Result<String> {
        let mut text = HEADER.to_owned();
        for (key, numbers) in self.parts() {
            let present: BTreeMap<_, _> = numbers.iter().filter(|(_, number)| **number > 0).collect();
            text.push_str(&serde_yaml_ng::to_string(&json!({ key: present }))?);
        }
        Ok(text)
    }

    /// The lower number of both baselines, for all that `counted` still has.
    pub fn lowered(&self, counted: &Self) -> Self {
        let lower = |recorded: &Numbers, counted: &Numbers| -> Numbers {
            let lowest = |(name, number): (&String, &u64)| {
                let allowed = recorded.get(name).copied().unwrap_or_default();
                (name.clone(), allowed.min(*number))
            };
            counted.iter().map(lowest).collect()
        };
        Self {
            vague_words: lower(&self.vague_words, &counted.vague_words),
            wide_comments: lower(&self.wide_comments, &counted.wide_comments),
            stopped_names: lower(&self.stopped_names, &counted.stopped_names),
            weak_descriptions: lower(&self.weak_descriptions, &counted.weak_descriptions),
            long_sentences: lower(&self.long_sentences, &counted.long_sentences),
        }
    }

    /// A line for each number that `newer`, a later version of this baseline, has raised. A new crate or page
    /// may bring numbers while the sum of all crates or pages does not grow. Then a file was moved or split.
    pub fn raised_in(&self, newer: &Self) -> Vec<String> {
        let mut lines = Vec::new();
        for ((key, former), (_, numbers)) in self.parts().into_iter().zip(newer.parts()) {
            for (name, number) in numbers {
                if let Some(old) = former.get(name).filter(|old| *old < number) {
                    lines.push(format!(
                        "{BASELINE}: {key} of {name} was raised from {old} to {number}; a number may only fall"
                    ));
                }
            }
            let (old, new) = (former.values().sum::<u64>(), numbers.values().sum::<u64>());
            if new > old {
                lines.push(format!(
                    "{BASELINE}: the sum of {key} was raised from {old} to {new}; the sum may only fall"
                ));
            }
        }
        lines
    }

    /// A line for each number of `counted` that is above this baseline.
    pub fn exceeded_by(&self, counted: &Self) -> Vec<String> {
        let mut lines = Vec::new();
        for ((key, allowed), (_, numbers)) in self.parts().into_iter().zip(counted.parts()) {
            for (name, number) in numbers {
                let allowed = allowed.get(name).copied().unwrap_or_default();
                if *number > allowed {
                    lines.push(format!(
                        "{name}: {key} is {number}, and {allowed} is allowed ({BASELINE})"
                    ));
                }
            }
        }
        lines
    }

    fn parts(&self) -> [(&'static str, &Numbers); 5] {
        [
            ("vagueWords", &self.vague_words),
            ("wideComments", &self.wide_comments),
            ("stoppedNames", &self.stopped_names),
            ("weakDescriptions", &self.weak_descriptions),
            ("longSentences", &self.long_sentences),
        ]
    }
}

impl fmt::Display for Baseline {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sum = |numbers: &Numbers| numbers.values().sum::<u64>();
        write!(
            formatter,
            "{} wide comments, {} stopped names, {} weak descriptions and {} long sentences are still there",
            sum(&self.wide_comments),
            sum(&self.stopped_names),
            sum(&self.weak_descriptions),
            sum(&self.long_sentences)
        )
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::Baseline;

    fn baseline(api: u64) -> Baseline {
        Baseline {
            stopped_names: [("api".to_owned(), api)].into(),
            ..Baseline::default()
        }
    }

    #[test]
    fn a_baseline_is_read_as_it_was_written() {
        let text = baseline(3).render().unwrap();
        assert_eq!(Baseline::parse(&text).unwrap(), baseline(3));
    }

    #[test]
    fn more_breaches_than_recorded_fail_and_fewer_pass() {
        assert_eq!(baseline(3).exceeded_by(&baseline(4)).len(), 1);
        assert_eq!(
            Baseline::default().exceeded_by(&baseline(1)).len(),
            1,
            "a new crate has none"
        );
        assert!(baseline(3).exceeded_by(&baseline(2)).is_empty());
    }

    #[test]
    fn a_baseline_can_only_be_lowered() {
        assert_eq!(
            baseline(3).raised_in(&baseline(4)).len(),
            2,
            "the number, and the sum"
        );
        assert!(baseline(3).raised_in(&baseline(2)).is_empty());
        assert!(!Baseline::default().raised_in(&baseline(1)).is_empty());
        assert_eq!(baseline(3).lowered(&baseline(4)), baseline(3));
        assert_eq!(baseline(3).lowered(&baseline(2)), baseline(2));
    }
}
