//! Where in the document a change happens, and in which surroundings: what operators need for their checks and messages.

use super::array_filter::ArrayFilters;
use document::{DEPTH_STORED_MAX, Doc, Kind, Value};
use error::{Code, Error, Result};
use std::fmt;
use steps::Counted;

/// One application of an update to one document.
pub(super) struct Run<'r> {
    /// The document as it was.
    pub root: Doc<'r>,
    /// The array position that made the document match, in digits: what `$` stands for.
    pub matched: Option<&'r str>,
    /// `$setOnInsert` takes part.
    pub inserting: bool,
    /// The `_id` is not settled yet (an upsert whose filter names none).
    pub id_open: bool,
    /// Take branches in the tree's order; only errors are of interest.
    pub along_tree: bool,
    pub now_ms: i64,
    pub filters: &'r ArrayFilters,
}

impl Run<'_> {
    /// `{_id: 1}`, as messages name the document.
    pub fn id_text(&self) -> String {
        match self.root.get("_id") {
            Some(id) => format!("{{_id: {}}}", crate::text::value(id)),
            None => "{no id}".to_owned(),
        }
    }
}

/// A path into the document, as a chain on the stack.
#[derive(Clone, Copy)]
pub(super) struct Place<'p> {
    pub parent: Option<&'p Place<'p>>,
    pub name: &'p str,
    /// Levels of nesting above: 1 for a top-level field.
    pub depth: usize,
    /// What holds this place is an array.
    pub in_array: bool,
}

impl<'p> Place<'p> {
    pub fn below(parent: Option<&'p Place<'p>>, name: &'p str, in_array: bool) -> Self {
        Place { parent, name, depth: parent.map_or(1, |parent| parent.depth + 1), in_array }
    }

    /// The top-level field that this place is in.
    pub fn root_name(&self) -> &'p str {
        self.chain().last().map_or("", |place| place.name)
    }

    /// This place and those above it.
    pub fn chain(&self) -> impl Iterator<Item = Place<'p>> {
        std::iter::successors(Some(*self), |place| place.parent.copied())
    }

    /// Refuses a value with this many levels of its own where the document would become too deep.
    pub fn check_depth(&self, levels: usize) -> Result<()> {
        if self.depth + levels > DEPTH_STORED_MAX { Err(too_deep()) } else { Ok(()) }
    }
}

pub(super) fn too_deep() -> Error {
    Error::new(Code::OVERFLOW, format!("Document exceeds maximum nesting depth of {DEPTH_STORED_MAX}"))
}

/// The dotted path.
impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            write!(f, "{parent}.")?;
        }
        f.write_str(self.name)
    }
}

/// Levels of nesting of a value: 0 for a scalar, and for what holds nothing.
pub(super) fn levels(value: Value<'_>) -> usize {
    match value {
        Value::Document(nested) | Value::Array(nested) | Value::CodeWithScope { scope: nested, .. } => {
            let inner = nested.elements().counted().map(|element| match element.kind {
                Kind::Document | Kind::Array | Kind::CodeWithScope => 1 + levels(element.value()),
                _ => 1,
            });
            inner.max().unwrap_or(0)
        }
        _ => 0,
    }
}

/// Refuses a whole document that nests too deep.
pub(super) fn check_document_depth(document: Doc<'_>) -> Result<()> {
    /// Type, a name, length and the zero at the end: less does not make a level.
    const LEVEL_BYTES_MIN: usize = 7;
    let may_be_deep = document.size() / LEVEL_BYTES_MIN > DEPTH_STORED_MAX;
    if may_be_deep && levels(Value::Document(document)) > DEPTH_STORED_MAX { Err(too_deep()) } else { Ok(()) }
}
