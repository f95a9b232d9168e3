//! The graph of views and what they read: checks cycles, depth and size.
//!
//! Each view is visited once, however many paths lead to it.

use crate::views::{DEPTH_MAX, PIPELINE_BYTES_MAX};
use document::{Doc, Value};
use error::{Code, Error, Result};
use hashbrown::{HashMap, HashSet};
use store::Namespace;

/// The names that each view reads.
#[derive(Default)]
pub struct ViewGraph {
    views: HashMap<String, View>,
}

#[derive(Default)]
struct View {
    reads: Vec<String>,
    /// The size of the stages.
    bytes: usize,
}

/// The largest depth and total size of stages on any path.
#[derive(Clone, Copy, Default)]
struct Extent {
    height: usize,
    bytes: usize,
}

impl Extent {
    fn max(self, other: Extent) -> Extent {
        Extent { height: self.height.max(other.height), bytes: self.bytes.max(other.bytes) }
    }

    fn and(self, view: &View) -> Extent {
        Extent { height: self.height + 1, bytes: self.bytes + view.bytes }
    }
}

impl ViewGraph {
    pub fn add(&mut self, name: &str, view_on: &str, stages: Doc<'_>) {
        let mut reads = vec![view_on.to_owned()];
        involved(stages, &mut reads);
        let mut known = HashSet::new();
        reads.retain(|name| known.insert(name.clone()));
        let bytes = stages.elements().map(|stage| stage.raw_value().len()).sum();
        self.views.insert(name.to_owned(), View { reads, bytes });
    }

    /// Returns the names that a view reads, each once.
    pub fn reads(&self, name: &str) -> &[String] {
        self.views.get(name).map(|view| view.reads.as_slice()).unwrap_or_default()
    }

    /// Fails with 5, 165 or 195.
    pub fn check(&self, namespace: &Namespace) -> Result<()> {
        let name = &*namespace.collection;
        let own = self.views.get(name).map_or(0, |view| view.bytes);
        let too_large = |message: String| Err(Error::new(Code::VIEW_PIPELINE_MAX_SIZE_EXCEEDED, message));
        if own > PIPELINE_BYTES_MAX {
            return too_large(format!(
                "View pipeline is too large and exceeds the maximum size of {PIPELINE_BYTES_MAX} bytes"
            ));
        }
        let mut path = vec![name];
        if self.leads_back(name, &mut path, &mut HashSet::new()) {
            let path: Vec<String> = path.iter().map(|name| format!("{}.{name}", namespace.database)).collect();
            let message = format!("View cycle detected: {namespace} => {}", path.join(" => "));
            return Err(Error::new(Code::GRAPH_CONTAINS_CYCLE, message));
        }
        let mut readers: HashMap<&str, Vec<&str>> = HashMap::new();
        for (reader, view) in &self.views {
            view.reads.iter().for_each(|read| readers.entry(read).or_default().push(reader));
        }
        let read = |name: &str| self.reads(name).iter().map(String::as_str).collect();
        let reading = |name: &str| readers.get(name).cloned().unwrap_or_default();
        let below = self.extent(name, 0, &read, &mut HashMap::new());
        let above = self.extent(name, 0, &reading, &mut HashMap::new());
        if below.height + above.height > DEPTH_MAX + 1 {
            let message = format!("View depth limit exceeded; maximum depth is {DEPTH_MAX}");
            return Err(Error::new(Code::VIEW_DEPTH_LIMIT_EXCEEDED, message));
        }
        if below.bytes + above.bytes - own > PIPELINE_BYTES_MAX {
            return too_large(format!(
                "Operation would result in a resolved view pipeline that exceeds the maximum size of \
                 {PIPELINE_BYTES_MAX} bytes"
            ));
        }
        Ok(())
    }

    /// Searches a path from the last of `path` to its first; extends `path` to it, and returns
    /// whether it exists. No path leads there from names in `known`.
    fn leads_back<'g>(&'g self, goal: &str, path: &mut Vec<&'g str>, known: &mut HashSet<&'g str>) -> bool {
        let Some(last) = path.last() else { return false };
        for next in self.reads(last) {
            path.push(next);
            let is_open = path.len() <= 2 * DEPTH_MAX && known.insert(next);
            if next == goal || is_open && self.leads_back(goal, path, known) {
                return true;
            }
            path.pop();
        }
        false
    }

    /// Returns the extent of a view and the views in the direction of `next`. `known`: the extents
    /// computed so far.
    fn extent<'g>(
        &self,
        name: &'g str,
        depth: usize,
        next: &dyn Fn(&str) -> Vec<&'g str>,
        known: &mut HashMap<&'g str, Extent>,
    ) -> Extent {
        let Some(view) = self.views.get(name) else { return Extent::default() };
        if let Some(extent) = known.get(name) {
            return *extent;
        }
        let mut most = Extent::default();
        if depth <= DEPTH_MAX {
            for name in next(name) {
                most = most.max(self.extent(name, depth + 1, next, known));
            }
        }
        let extent = most.and(view);
        known.insert(name, extent);
        extent
    }
}

/// Collects the other collections that stages read.
fn involved(stages: Doc<'_>, names: &mut Vec<String>) {
    for stage in stages.values().filter_map(Value::as_document).filter_map(Doc::first) {
        match (stage.key(), stage.value()) {
            ("$unionWith", Value::String(name)) => names.push(name.to_owned()),
            ("$lookup" | "$graphLookup" | "$unionWith", Value::Document(spec)) => {
                names.extend(["from", "coll"].iter().filter_map(|key| spec.get(key)?.as_str()).map(str::to_owned));
                involved(spec.get("pipeline").and_then(Value::as_array).unwrap_or(Doc::EMPTY), names);
            }
            ("$facet", Value::Document(facets)) => {
                facets.values().filter_map(Value::as_array).for_each(|stages| involved(stages, names));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::DocBuf;

    fn union_with(names: &[&str]) -> DocBuf {
        crate::views::stages(|array| {
            names.iter().for_each(|name| array.document().append("$unionWith", *name));
        })
    }

    /// Views `v1` to `v{height}`, each of which reads all before it: a search along every path
    /// would not end.
    fn tower(height: usize) -> ViewGraph {
        let mut graph = ViewGraph::default();
        let names: Vec<String> = (0..=height).map(|number| format!("v{number}")).collect();
        for number in 1..=height {
            let below: Vec<&str> = names[..number].iter().map(String::as_str).collect();
            graph.add(&names[number], &names[number - 1], union_with(&below).as_doc());
        }
        graph
    }

    fn code(graph: &ViewGraph, name: &str) -> Option<i32> {
        graph.check(&Namespace::new("d", name)).err().map(|error| error.code().0)
    }

    #[test]
    fn towers_are_looked_at_view_by_view() {
        let graph = tower(20);
        assert_eq!(["v1", "v10", "v20"].map(|name| code(&graph, name)), [None; 3]);
        let graph = tower(21);
        assert_eq!(["v1", "v10", "v21"].map(|name| code(&graph, name)), [Some(165); 3]);
    }

    #[test]
    fn wide_graphs_are_looked_at_view_by_view() {
        // On each of 18 levels 30 views, which read all of the level below.
        let mut graph = ViewGraph::default();
        for level in 1..=18 {
            let below: Vec<String> = (0..30).map(|number| format!("l{}v{number}", level - 1)).collect();
            let below: Vec<&str> = below.iter().map(String::as_str).collect();
            for number in 0..30 {
                graph.add(&format!("l{level}v{number}"), below[0], union_with(&below).as_doc());
            }
        }
        assert_eq!(["l1v7", "l9v7", "l18v7"].map(|name| code(&graph, name)), [None; 3]);
        graph.add("l1v7", "l18v9", Doc::EMPTY);
        assert_eq!(code(&graph, "l1v7"), Some(5));
    }

    #[test]
    fn sizes_add_up_along_the_longest_way() {
        let stages =
            |bytes: usize| crate::views::stages(|array| array.document().append("$match", "x".repeat(bytes).as_str()));
        let mut graph = ViewGraph::default();
        graph.add("a", "base", stages(6_000_000).as_doc());
        graph.add("b", "a", stages(6_000_000).as_doc());
        graph.add("c", "a", stages(3_000_000).as_doc());
        assert_eq!(["a", "b", "c"].map(|name| code(&graph, name)), [None; 3]);
        graph.add("d", "b", stages(6_000_000).as_doc());
        assert_eq!(["a", "b", "d", "c"].map(|name| code(&graph, name)), [Some(195), Some(195), Some(195), None]);
    }
}
