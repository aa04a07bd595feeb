//! Draws a flow for the documentation. The drawing depends on the graph only, so a generated page can be
//! compared.

use std::fmt::Write;

use crate::graph::Flow;

impl<E> Flow<'_, E> {
    /// The graph as a Mermaid flowchart. An edge that a longer path implies is left out. A task that is
    /// skipped under the conditions of this flow has a dashed frame.
    #[must_use]
    pub fn to_mermaid(&self) -> String {
        self.to_mermaid_with(|_| None)
    }

    /// Like [`Self::to_mermaid`], with a second line below the names of some tasks. `note` gets the name of a
    /// task.
    #[must_use]
    pub fn to_mermaid_with(&self, note: impl Fn(&'static str) -> Option<String>) -> String {
        let mut text = String::from("flowchart TD\n");
        for (index, task) in self.tasks.iter().enumerate() {
            let class = if task.skipped { ":::skipped" } else { "" };
            let name = task.name.replace('"', "#quot;");
            let note = note(task.name).map_or_else(String::new, |note| format!("<br/>{note}"));
            let _ = writeln!(text, "  t{index}[\"{name}{note}\"]{class}");
        }
        for (first, then) in self.reduced_edges() {
            let _ = writeln!(text, "  t{first} --> t{then}");
        }
        if self.tasks.iter().any(|task| task.skipped) {
            text.push_str("  classDef skipped stroke-dasharray: 4 4\n");
        }
        text
    }

    /// The smallest set of edges with the same order (transitive reduction).
    fn reduced_edges(&self) -> Vec<(usize, usize)> {
        let count = self.tasks.len();
        // reach[i][j]: j comes before i. Dependencies point backwards, so the rows of a task's predecessors
        // are ready.
        let mut reach = vec![vec![false; count]; count];
        let mut edges = Vec::new();
        for (then, task) in self.tasks.iter().enumerate() {
            let mut row = vec![false; count];
            for first in task.after.iter().map(|id| id.index) {
                let implied = task.after.iter().any(|other| reach[other.index][first]);
                if !implied {
                    edges.push((first, then));
                }
                row[first] = true;
                for (before, known) in row.iter_mut().zip(&reach[first]) {
                    *before |= *known;
                }
            }
            reach[then] = row;
        }
        edges
    }
}
