//! The commands and files of the documentation: commands in fenced blocks and in code spans, and files to
//! write.

use std::fs;

use testkit::files_below;

use crate::programs::root;

/// The cluster of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cluster {
    Garden,
    Seed,
}

/// A command of the documentation.
#[derive(Clone, Debug)]
pub struct Documented {
    pub page: String,
    pub line: usize,
    pub cluster: Cluster,
    pub text: String,
}

/// All commands, in the order of the pages: installing comes first.
pub fn commands() -> Vec<Documented> {
    pages()
        .iter()
        .flat_map(|(page, text)| of_page(page, text))
        .collect()
}

/// Files of a page: a comment `<!-- file: NAME -->` stands before the block with the content.
pub fn files() -> Vec<(String, String)> {
    let mut files = Vec::new();
    for (_, text) in pages() {
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let name = line
                .trim()
                .strip_prefix("<!-- file: ")
                .and_then(|rest| rest.strip_suffix(" -->"));
            if let Some(name) = name {
                let content: Vec<&str> = lines
                    .by_ref()
                    .skip(1)
                    .take_while(|line| !line.starts_with("```"))
                    .collect();
                files.push((name.to_owned(), content.join("\n")));
            }
        }
    }
    files
}

/// The pages that an operator reads in this order, from the installation on, then all further pages.
pub fn pages() -> Vec<(String, String)> {
    const IN_ORDER: [&str; 5] = [
        "docs/operate/install.md",
        "docs/operate/move.md",
        "docs/operate/dead-seed.md",
        "docs/operate/runbooks.md",
        "README.md",
    ];
    let mut names: Vec<String> = IN_ORDER.map(str::to_owned).into();
    for page in files_below(&root().join("docs"), "md").unwrap() {
        let name = page.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names[IN_ORDER.len()..].sort();
    names
        .into_iter()
        .map(|name| {
            let text = fs::read_to_string(root().join(&name)).unwrap();
            (name, text)
        })
        .collect()
}

fn of_page(page: &str, text: &str) -> Vec<Documented> {
    let mut found = Vec::new();
    let mut fence: Option<Cluster> = None;
    for (index, line) in text.lines().enumerate() {
        if let Some(info) = line.trim_start().strip_prefix("```") {
            fence = match fence {
                Some(_) => None,
                None if info.split_whitespace().nth(1) == Some("seed") => Some(Cluster::Seed),
                None => Some(Cluster::Garden),
            };
            continue;
        }
        let mut add = |cluster, text: &str| {
            found.push(Documented {
                page: page.to_owned(),
                line: index + 1,
                cluster,
                text: text.to_owned(),
            });
        };
        if let Some(cluster) = fence {
            let command = line.trim().trim_start_matches("$ ");
            if is_command(command) {
                add(cluster, command.split("  #").next().unwrap_or_default().trim());
            }
            continue;
        }
        // Each second part between back quotes is code.
        for span in line.split('`').skip(1).step_by(2).filter(|span| is_command(span)) {
            let cluster = if ["shoot--", "extension-", "kube-system"]
                .iter()
                .any(|name| span.contains(name))
            {
                Cluster::Seed
            } else {
                Cluster::Garden
            };
            add(cluster, span);
        }
    }
    found
}

/// A program with arguments. `helm upgrade` alone names a command and is none. The plugin of kubectl is a
/// crate of the workspace: the tests of `kubectl-repot` parse each documented command line.
fn is_command(text: &str) -> bool {
    let mut words = text.split_whitespace();
    matches!(words.next(), Some("kubectl" | "helm"))
        && !text.starts_with("kubectl repot ")
        && words.count() >= 2
}

/// The clusters in the info string of a block.
const CLUSTERS: [&str; 2] = ["garden", "seed"];

/// The number of blocks with a cluster in the info string, and the lines of the blocks whose first line does
/// not show the same cluster.
fn blocks_and_hidden_clusters(text: &str) -> (usize, Vec<usize>) {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let (mut count, mut hidden, mut is_inside) = (0, Vec::new(), false);
    for (index, line) in lines.iter().enumerate() {
        let Some(info) = line.strip_prefix("```") else {
            continue;
        };
        is_inside = !is_inside;
        if !is_inside {
            continue;
        }
        let named = info.split_whitespace().nth(1);
        let named = named.filter(|word| CLUSTERS.contains(word));
        let shown = lines.get(index + 1).and_then(|first| first.strip_prefix("# "));
        let shown = shown.filter(|word| CLUSTERS.contains(word));
        count += usize::from(named.is_some());
        if named != shown {
            hidden.push(index + 1);
        }
    }
    (count, hidden)
}

/// Readers see no info string, and a command in the wrong cluster does harm.
#[test]
fn each_block_shows_the_cluster_in_the_first_line() {
    let mut all = 0;
    for (page, text) in pages() {
        let (count, hidden) = blocks_and_hidden_clusters(&text);
        assert!(
            hidden.is_empty(),
            "{page}: blocks without `# garden` or `# seed` in lines {hidden:?}"
        );
        all += count;
    }
    assert!(all > 100, "only {all} blocks with a cluster were found");
    let wrong =
        "```sh seed\n# garden\n```\n```sh garden\nkubectl\n```\n```sh\n# seed\n```\n```sh seed\n# seed\n```";
    assert_eq!(blocks_and_hidden_clusters(wrong), (3, vec![1, 4, 7]));
}

#[test]
fn commands_are_found_in_blocks_and_in_code_spans() {
    let text = "Do `kubectl get x` or\n```sh seed\n$ helm install a b   # now\nother\n```\n`helm upgrade` in `kubectl -n kube-system get y`. `kubectl repot status x`";
    let found: Vec<(usize, Cluster, String)> = of_page("p", text)
        .into_iter()
        .map(|command| (command.line, command.cluster, command.text))
        .collect();
    assert_eq!(
        found,
        [
            (1, Cluster::Garden, "kubectl get x".to_owned()),
            (3, Cluster::Seed, "helm install a b".to_owned()),
            (6, Cluster::Seed, "kubectl -n kube-system get y".to_owned()),
        ]
    );
}
