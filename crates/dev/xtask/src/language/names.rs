//! Names of public types and functions without a purpose in the name.

/// Types that describe a state of knowledge instead of an object of the domain.
const TYPES: &[&str] = &[
    "Found", "Seen", "Place", "Look", "Known", "Given", "Wanted", "Told", "Said", "Stance", "Refusal",
    "Claim",
];

/// Functions without a verb and an object.
const FUNCTIONS: &[&str] = &[
    "of",
    "told",
    "said",
    "given",
    "found",
    "seen",
    "known",
    "look",
    "place",
    "put",
    "goes_by",
    "another_mind",
];

/// How many public types and functions of a source file have such a name.
pub fn stopped(text: &str) -> u64 {
    let stopped = text
        .lines()
        .filter(|line| stopped_type(line) || stopped_function(line));
    stopped.count() as u64
}

fn stopped_type(line: &str) -> bool {
    let Some(rest) = line.trim_start().strip_prefix("pub") else {
        return false;
    };
    let rest = match rest.strip_prefix('(') {
        Some(scoped) => scoped.split_once(')').map_or("", |(_, after)| after),
        None => rest,
    };
    ["struct ", "enum ", "trait "]
        .iter()
        .filter_map(|kind| rest.trim_start().strip_prefix(kind))
        .any(|name| TYPES.contains(&identifier(name)))
}

fn stopped_function(line: &str) -> bool {
    line.split("//").next().is_some_and(|code| {
        code.split_once("fn ")
            .is_some_and(|(before, name)| !before.ends_with(is_part) && FUNCTIONS.contains(&identifier(name)))
    })
}

fn identifier(text: &str) -> &str {
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    &text[..end]
}

fn is_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::stopped;

    #[test]
    fn stopped_names_are_found_whatever_their_visibility() {
        assert_eq!(
            stopped("pub(crate) struct Found<'a> {\n    pub enum Place {\nstruct Seen;"),
            2
        );
        assert_eq!(
            stopped("    pub async fn of(shoot: &Shoot)\nfn told<T>()\nfn look_up()"),
            2
        );
    }

    #[test]
    fn longer_names_and_comments_do_not_count() {
        assert_eq!(
            stopped("pub struct FoundMachine;\nfn place_on_seed() {}\n// fn of nothing"),
            0
        );
    }
}
