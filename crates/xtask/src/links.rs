//! `xtask links`: links between pages, and from pages to files of the repository. A link to another site is
//! not followed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, bail};
use pulldown_cmark::{Event, Parser, Tag, TagEnd};

use crate::sources;

/// Pages outside of `docs/`.
const TOP_LEVEL: [&str; 3] = ["README.md", "CONTRIBUTING.md", "SECURITY.md"];

/// Fails with a line for each link whose file or heading does not exist.
pub fn run() -> Result<()> {
    let root = Path::new(".");
    let mut files = sources::files_below(vec![root.join("docs")], "md")?;
    files.extend(TOP_LEVEL.map(|name| root.join(name)));
    let mut pages = BTreeMap::new();
    for file in files {
        let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        pages.insert(normalized(&file), Page::parse(&text));
    }
    let broken = broken(&pages, |path| root.join(path).exists());
    for line in &broken {
        eprintln!("links: {line}");
    }
    if !broken.is_empty() {
        bail!("{} broken link(s) in pages", broken.len());
    }
    println!("links: ok ({} pages)", pages.len());
    Ok(())
}

#[derive(Default)]
struct Page {
    /// Destinations of links, as written.
    links: Vec<String>,
    /// Fragments under which headings can be linked to.
    fragments: BTreeSet<String>,
}

impl Page {
    fn parse(markdown: &str) -> Self {
        let mut page = Self::default();
        let mut repeated: BTreeMap<String, usize> = BTreeMap::new();
        let mut heading = None;
        for event in Parser::new(markdown) {
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
    fn a_link_in_code_is_no_link() {
        assert!(Page::parse("`[a](b.md)`\n```\n[c](d.md)\n```").links.is_empty());
    }

    #[test]
    fn a_repeated_heading_has_a_number() {
        let page = Page::parse("# Look\n# Look");
        assert_eq!(page.fragments, ["look".to_owned(), "look-1".to_owned()].into());
    }
}
