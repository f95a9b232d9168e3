//! The position in the document at which a change is applied, with the context that operators need
//! for checks and messages.

use super::array_filter::ArrayFilters;
use document::{DEPTH_STORED_MAX, Doc, Kind, Value};
use error::{Code, Error, Result};
use std::fmt;
use steps::Counted;

/// One application of an update to one document.
pub(super) struct UpdateRun<'r> {
    /// The document before the update.
    pub root: Doc<'r>,
    /// The array index that made the document match, in digits: the value of `$`.
    pub matched_index: Option<&'r str>,
    /// Whether `$setOnInsert` applies.
    pub is_upsert: bool,
    /// Whether the `_id` is not determined yet (an upsert whose filter contains none).
    pub is_id_undetermined: bool,
    /// Whether to apply branches in the tree's order, to find the first error.
    pub in_tree_order: bool,
    pub now_ms: i64,
    pub filters: &'r ArrayFilters,
}

impl UpdateRun<'_> {
    /// Returns `{_id: 1}`, as messages name the document.
    pub fn id_text(&self) -> String {
        match self.root.get("_id") {
            Some(id) => format!("{{_id: {}}}", values::text::value(id)),
            None => "{no id}".to_owned(),
        }
    }
}

/// A path into the document, as a linked list on the stack.
#[derive(Clone, Copy)]
pub(super) struct UpdateTarget<'p> {
    pub parent: Option<&'p UpdateTarget<'p>>,
    pub name: &'p str,
    /// Levels of nesting above: 1 for a top-level field.
    pub depth: usize,
    /// Whether the parent is an array.
    pub in_array: bool,
}

impl<'p> UpdateTarget<'p> {
    pub fn below(parent: Option<&'p UpdateTarget<'p>>, name: &'p str, in_array: bool) -> Self {
        UpdateTarget { parent, name, depth: parent.map_or(1, |parent| parent.depth + 1), in_array }
    }

    /// Returns the name of the top-level field on the path.
    pub fn root_name(&self) -> &'p str {
        self.ancestors().last().map_or("", |target| target.name)
    }

    /// Returns an iterator over this place and its ancestors.
    pub fn ancestors(&self) -> impl Iterator<Item = UpdateTarget<'p>> {
        std::iter::successors(Some(*self), |target| target.parent.copied())
    }

    /// Fails if a value with this many levels of its own would nest the document too deep.
    pub fn check_depth(&self, levels: usize) -> Result<()> {
        if self.depth + levels > DEPTH_STORED_MAX { Err(nesting_too_deep()) } else { Ok(()) }
    }
}

pub(super) fn nesting_too_deep() -> Error {
    Error::new(Code::OVERFLOW, format!("Document exceeds maximum nesting depth of {DEPTH_STORED_MAX}"))
}

/// Formats the dotted path.
impl fmt::Display for UpdateTarget<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            write!(f, "{parent}.")?;
        }
        f.write_str(self.name)
    }
}

/// Returns the levels of nesting of a value: 0 for a scalar, and for an empty document or array.
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

/// Fails if a whole document nests too deep.
pub(super) fn check_document_depth(document: Doc<'_>) -> Result<()> {
    /// Least size of a level: type, a name, length and the zero at the end.
    const LEVEL_BYTES_MIN: usize = 7;
    let may_be_deep = document.size() / LEVEL_BYTES_MIN > DEPTH_STORED_MAX;
    if may_be_deep && levels(Value::Document(document)) > DEPTH_STORED_MAX { Err(nesting_too_deep()) } else { Ok(()) }
}

/// Returns the array index that a component denotes, if any.
pub(super) fn array_index(name: &str) -> Option<usize> {
    is_digits(name.as_bytes()).then(|| name.parse::<u32>().ok())?.and_then(|index| usize::try_from(index).ok())
}

pub(super) fn is_digits(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(u8::is_ascii_digit)
}
