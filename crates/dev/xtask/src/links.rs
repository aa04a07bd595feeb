//! `xtask links`: links between pages, from pages to files of the repository, and source files and functions
//! that pages name. A link to a different site is not followed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, bail};
use pulldown_cmark::{Event, Parser, Tag, TagEnd};

use crate::sources;

/// Pages outside of `docs/`.
const TOP_LEVEL: [&str; 3] = ["README.md", "CONTRIBUTING.md", "SECURITY.md"];

/// Fails with a line for each link to a missing file or heading, and for each missing source file or
/// function.
pub fn run() -> Result<()> {
    let root = Path::new(".");
    let mut files = sources::files_below(vec![root.join("docs")], "md")?;
    files.extend(TOP_LEVEL.map(|name| root.join(name)));
    let mut pages = BTreeMap::new();
    for file in files {
        let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        pages.insert(normalized(&file), Page::parse(&text));
    }
    let mut broken = broken(&pages, |path| root.join(path).exists());
    let mut files = Vec::new();
    for file in sources::rust_files(root)? {
        let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        files.push((file, text));
    }
    broken.extend(missing_sources(&pages, &files));
    for line in &broken {
        eprintln!("links: {line}");
    }
    if !broken.is_empty() {
        bail!("{} broken link(s) or file name(s) in pages", broken.len());
    }
    println!("links: ok ({} pages)", pages.len());
    Ok(())
}

/// The fragments of links to the headings of a page.
pub(crate) fn fragments(markdown: &str) -> BTreeSet<String> {
    Page::parse(markdown).fragments
}

#[derive(Default)]
struct Page {
    /// Destinations of links, as written.
    links: Vec<String>,
    /// Fragments of links to headings.
    fragments: BTreeSet<String>,
    /// Source files in the text.
    sources: BTreeSet<SourceReference>,
}

impl Page {
    fn parse(markdown: &str) -> Self {
        let mut page = Self::default();
        let mut repeated: BTreeMap<String, usize> = BTreeMap::new();
        let mut heading = None;
        let mut previous: Option<PathBuf> = None;
        for event in Parser::new(markdown) {
            if let Event::Code(code) = &event
                && let Some(source) = SourceReference::read(code, previous.as_deref())
            {
                previous = Some(source.file.clone());
                page.sources.insert(source);
            }
            match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    page.links.push(dest_url.into_string());
                }
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    let fragment = fragment(&heading.take().unwrap_or_default());
                    let count = repeated.entry(fragment.clone()).or_default();
                    page.fragments.insert(match *count {
                        0 => fragment,
                        count => format!("{fragment}-{count}"),
                    });
                    *count += 1;
                }
                Event::Text(text) | Event::Code(text) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&text);
                    }
                }
                _ => {}
            }
        }
        page
    }
}

/// A source file in a code span of a page, such as `etcd/copy.rs` or `tests/real/copy.rs::a_test`.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct SourceReference {
    /// The whole path, or the end of the path.
    file: PathBuf,
    /// The functions, modules and types after the path.
    names: Vec<String>,
}

impl SourceReference {
    /// Reads a code span. A span such as `::a_test` has no path, and names a function of `previous`, the last
    /// file that the page names.
    fn read(code: &str, previous: Option<&Path>) -> Option<Self> {
        let mut parts = code.split("::");
        let path = parts.next()?;
        let names = parts.map(str::to_owned).collect();
        if path.is_empty() {
            let file = previous?.to_path_buf();
            return Some(Self { file, names });
        }
        let is_path = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
        let file = PathBuf::from(path);
        let is_source = path.chars().all(is_path) && file.extension().is_some_and(|end| end == "rs");
        is_source.then_some(Self { file, names })
    }

    /// The fault of the reference, if no file of the repository has this path and defines the names.
    fn fault(&self, files: &[(PathBuf, String)]) -> Option<String> {
        let shown = self.file.display();
        let texts = files.iter().filter(|(file, _)| file.ends_with(&self.file));
        let mut texts = texts.map(|(_, text)| text).peekable();
        if texts.peek().is_none() {
            return Some(format!("{shown} is no source file of the repository"));
        }
        let is_defined = texts.any(|text| self.names.iter().all(|name| defines(text, name)));
        (!is_defined).then(|| format!("{shown} does not define {}", self.names.join("::")))
    }
}

/// Whether a source file defines a function, module or type with this name.
fn defines(text: &str, name: &str) -> bool {
    let continues = |rest: &str| rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    ["fn", "mod", "struct", "enum"].iter().any(|kind| {
        let definition = format!("{kind} {name}");
        text.split(definition.as_str())
            .skip(1)
            .any(|rest| !continues(rest))
    })
}

/// A line for each source file that a page names and the repository does not have, and for each name that
/// the file does not define. `files`: all source files with their texts. A page may leave out the first
/// folders of a path, as in a list of files of a single crate.
fn missing_sources(pages: &BTreeMap<PathBuf, Page>, files: &[(PathBuf, String)]) -> Vec<String> {
    let mut lines = Vec::new();
    for (path, page) in pages {
        let faults = page.sources.iter().filter_map(|named| named.fault(files));
        lines.extend(faults.map(|fault| format!("{}: {fault}", path.display())));
    }
    lines
}

/// The fragment that GitHub gives a heading.
fn fragment(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    let text: String = heading.trim().to_lowercase().chars().filter(kept).collect();
    text.replace(' ', "-")
}

/// A line for each link that leads nowhere. `exists` tells whether the repository has a path.
fn broken(pages: &BTreeMap<PathBuf, Page>, exists: impl Fn(&Path) -> bool) -> Vec<String> {
    let mut lines = Vec::new();
    for (path, page) in pages {
        for link in page.links.iter().filter(|link| !is_external(link)) {
            let (file, fragment) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() {
                path.clone()
            } else {
                normalized(&path.parent().unwrap_or(Path::new("")).join(file))
            };
            let shown = path.display();
            if !exists(&target) {
                lines.push(format!("{shown}: {link} leads to no file of the repository"));
            } else if !fragment.is_empty()
                && pages
                    .get(&target)
                    .is_some_and(|page| !page.fragments.contains(fragment))
            {
                lines.push(format!(
                    "{shown}: {link} leads to no heading of {}",
                    target.display()
                ));
            }
        }
    }
    lines
}

fn is_external(link: &str) -> bool {
    link.contains("://") || link.starts_with("mailto:")
}

/// Without `.` and `..`, as far as the path has folders for them.
fn normalized(path: &Path) -> PathBuf {
    let mut normalized = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                normalized.pop();
            }
            component => normalized.push(component),
        }
    }
    normalized
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(pages: &[(&str, &str)]) -> BTreeMap<PathBuf, Page> {
        let parsed = |(path, text): &(&str, &str)| (PathBuf::from(path), Page::parse(text));
        pages.iter().map(parsed).collect()
    }

    #[test]
    fn links_to_pages_headings_and_files_are_followed() {
        let pages = pages(&[
            (
                "docs/a/x.md",
                "[y](../b/y.md#is-etcd-off) [self](#x) [code](../../src/lib.rs)\n# X",
            ),
            ("docs/b/y.md", "## Is `etcd` off?\n[site](https://example.com/#a)"),
        ]);
        let there = |path: &Path| path == Path::new("src/lib.rs") || pages.contains_key(path);
        assert_eq!(broken(&pages, there), Vec::<String>::new());
    }

    #[test]
    fn a_missing_file_and_a_missing_heading_are_reported() {
        let pages = pages(&[
            ("docs/x.md", "[gone](gone.md) [none](y.md#none) ![picture](y.png)"),
            ("docs/y.md", "# Y"),
        ]);
        let broken = broken(&pages, |path| pages.contains_key(path));
        assert_eq!(
            broken,
            [
                "docs/x.md: gone.md leads to no file of the repository",
                "docs/x.md: y.md#none leads to no heading of docs/y.md",
                "docs/x.md: y.png leads to no file of the repository",
            ]
        );
    }

    #[test]
    fn a_source_file_that_the_repository_lacks_is_reported() {
        let pages = pages(&[(
            "docs/x.md",
            "| `copy.rs` | `a/copy.rs::a_test` | `::a_test` | `b/copy.rs` | `*.rs` |\n```\n`gone.rs`\n```",
        )]);
        let file = (
            PathBuf::from("./crates/core/a/copy.rs"),
            "fn a_test() {}".to_owned(),
        );
        assert_eq!(
            missing_sources(&pages, &[file]),
            ["docs/x.md: b/copy.rs is no source file of the repository"]
        );
    }

    #[test]
    fn a_name_that_no_file_with_the_path_defines_is_reported() {
        let text = "`copy.rs::a_test` `::Copy::steps` `::a_mod` `::a_te` `b/copy.rs::a_test` `copy.rs::gone`";
        let pages = pages(&[("docs/x.md", text)]);
        let files = [
            (
                "./a/copy.rs",
                "async fn a_test() {}\npub struct Copy<T>;\nfn steps()",
            ),
            ("./b/copy.rs", "mod a_mod;\n// a_test"),
        ];
        let files = files.map(|(file, text)| (PathBuf::from(file), text.to_owned()));
        assert_eq!(
            missing_sources(&pages, &files),
            [
                "docs/x.md: b/copy.rs does not define a_test",
                "docs/x.md: copy.rs does not define a_te",
                "docs/x.md: copy.rs does not define gone",
            ]
        );
    }

    #[test]
    fn a_link_in_code_is_no_link() {
        assert!(Page::parse("`[a](b.md)`\n```\n[c](d.md)\n```").links.is_empty());
    }

    #[test]
    fn a_repeated_heading_has_a_number() {
        let page = Page::parse("# Look\n# Look");
        assert_eq!(page.fragments, ["look".to_owned(), "look-1".to_owned()].into());
    }
}
