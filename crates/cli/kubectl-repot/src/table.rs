//! Columns and trees of text. A cell or a branch is within a line.

use crate::terminal::one_line;

/// Spaces between two columns, as kubectl writes tables.
const GAP: usize = 3;

/// Rows with aligned columns, a line for each row.
#[must_use]
pub fn columns(rows: &[Vec<String>]) -> String {
    let shown = |row: &Vec<String>| row.iter().map(|cell| one_line(cell).into_owned()).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(shown).collect();
    let count = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default() + GAP
    };
    let widths: Vec<usize> = (0..count).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(cell);
            line.extend(std::iter::repeat_n(
                ' ',
                width.saturating_sub(cell.chars().count()),
            ));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// A line with further lines below.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Branch {
    text: String,
    below: Vec<Branch>,
}

impl Branch {
    /// A line without further lines.
    #[must_use]
    pub fn new(text: impl AsRef<str>) -> Self {
        Self {
            text: one_line(text.as_ref()).into_owned(),
            below: Vec::new(),
        }
    }

    /// Adds a line below.
    pub fn add(&mut self, text: impl AsRef<str>) {
        self.below.push(Self::new(text));
    }

    /// Adds a line that has lines below already.
    pub fn attach(&mut self, branch: Branch) {
        self.below.push(branch);
    }

    /// Adds a line with lines below, unless there are no such lines.
    pub fn add_group(&mut self, text: &str, lines: Vec<String>) {
        if !lines.is_empty() {
            let mut group = Self::new(text);
            group.below = lines.into_iter().map(Self::new).collect();
            self.below.push(group);
        }
    }

    /// The tree as text.
    #[must_use]
    pub fn render(&self) -> String {
        let mut text = format!("{}\n", self.text);
        self.render_below("", &mut text);
        text
    }

    fn render_below(&self, indent: &str, text: &mut String) {
        for (index, branch) in self.below.iter().enumerate() {
            let is_last = index + 1 == self.below.len();
            let (mark, rest) = if is_last {
                ("└─ ", "   ")
            } else {
                ("├─ ", "│  ")
            };
            text.push_str(indent);
            text.push_str(mark);
            text.push_str(&branch.text);
            text.push('\n');
            branch.render_below(&format!("{indent}{rest}"), text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_without_spaces_at_the_end() {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let text = columns(&[row(["NAME", "SEED"]), row(["a-long-name", ""]), row(["b", "s"])]);
        assert_eq!(text, "NAME          SEED\na-long-name\nb             s\n");
        assert_eq!(columns(&[row(["a\nb", "\u{1b}"])]), "a\\u{a}b   \\u{1b}\n");
    }

    #[test]
    fn a_tree_shows_groups_that_have_lines() {
        let mut tree = Branch::new("Shoot");
        tree.add("seed: a");
        tree.add_group("empty", Vec::new());
        tree.add_group("errors", vec!["one".to_owned(), "two".to_owned()]);
        assert_eq!(
            tree.render(),
            "Shoot\n├─ seed: a\n└─ errors\n   ├─ one\n   └─ two\n"
        );
    }
}
