//! The paths that a stage changes, which determine the conditions that can be tested before it.

use crate::predicate::{Node, Test};
use document::path::{Path, position};
use steps::Counted;

/// With more paths than this, conditions are not compared with them.
const PATHS_MAX: usize = 256;

/// The effect of a stage on the paths of a document. The number of documents may change, too.
#[derive(Debug, Default)]
pub struct Changes {
    /// Paths whose values change.
    pub written: Vec<String>,
    /// The only paths that remain; `None` if all do.
    pub retained: Option<Vec<String>>,
    /// Whether documents do not change.
    pub unchanged: bool,
    /// Paths that have the value of a former top-level field: new path, old name.
    pub renamed: Vec<(String, String)>,
}

impl Changes {
    /// Returns the form that a condition has before the stage, if it can be tested there.
    pub fn before_stage(&self, condition: &Node) -> Option<Node> {
        steps::step();
        if self.unchanged {
            return Some(condition.clone());
        }
        let kept = self.retained.as_ref().map_or(0, Vec::len);
        if self.written.len() + self.renamed.len() + kept > PATHS_MAX {
            return None;
        }
        let all = |parts: &[Node]| parts.iter().map(|part| self.before_stage(part)).collect::<Option<Vec<_>>>();
        Some(match condition {
            Node::And(parts) => Node::And(all(parts)?),
            Node::Or(parts) => Node::Or(all(parts)?),
            Node::Nor(parts) => Node::Nor(all(parts)?),
            Node::Path { test, .. } if is_about_arrays(test) => return None,
            Node::Path { path, test } => Node::Path { path: self.path_before_stage(path)?, test: test.clone() },
            Node::Expression(expression) => {
                let reads = expression.paths()?;
                let free = reads.iter().all(|path| self.old_path(path).is_some() || !self.touches(path));
                let rename = |path: &str| self.old_path(path).unwrap_or_else(|| path.to_owned());
                free.then(|| Node::expression(expression.renamed(&rename)))?
            }
            _ => return None,
        })
    }

    fn path_before_stage(&self, path: &Path) -> Option<Path> {
        match self.old_path(path.as_str()) {
            Some(old) => Some(Path::new(&old)),
            None => (!self.touches(field_prefix(path))).then(|| path.clone()),
        }
    }

    /// Returns the path before the stage of a path after it.
    fn old_path(&self, path: &str) -> Option<String> {
        let (new, old) = self.renamed.iter().find(|(new, _)| is_within(path, new))?;
        Some(format!("{old}{}", &path[new.len()..]))
    }

    fn touches(&self, path: &str) -> bool {
        self.written.iter().counted().any(|written| is_within(path, written) || is_within(written, path))
            || self.renamed.iter().counted().any(|(new, _)| is_within(path, new))
            || self.retained.as_ref().is_some_and(|kept| !kept.iter().counted().any(|kept| is_within(path, kept)))
    }
}

/// Returns the part of a path that consists of field names: a number after it may denote an
/// element's position as well as a field.
fn field_prefix(path: &Path) -> &str {
    let names = path.components().enumerate().take_while(|(at, name)| *at == 0 || position(name).is_none());
    let length = names.map(|(_, name)| name.len() + 1).sum::<usize>().saturating_sub(1);
    path.as_str().get(..length).unwrap_or(path.as_str())
}

/// Returns whether MongoDB leaves a condition in its place.
fn is_about_arrays(test: &Test) -> bool {
    match test {
        Test::ElementMatches(_) | Test::ElementSatisfies(_) | Test::Size(_) | Test::Never => true,
        Test::Not(test) => is_about_arrays(test),
        Test::And(tests) => tests.iter().any(is_about_arrays),
        Test::Collated(test, _) => is_about_arrays(test),
        _ => false,
    }
}

/// Returns whether a path is equal to another or continues it.
pub fn is_within(path: &str, other: &str) -> bool {
    path.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}
