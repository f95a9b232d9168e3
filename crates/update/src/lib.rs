//! The `u` of an update: parses operators, a replacement or a pipeline, and applies it to a
//! document.
//!
//! Operators form one tree of paths ([`tree`]) that is walked once beside the document ([`apply`]);
//! fields that no operator touches are copied as bytes. In reading order: [`parse`], [`tree`],
//! [`apply`], [`operator`] with one module per larger operator, [`replace`], [`upsert`].
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/operator/update/>; where it is silent,
//! the behavior of a 6.0 server.

mod add_to_set;
mod apply;
mod arithmetic;
mod array_filter;
mod bit;
pub mod diff;
mod operator;
mod parse;
mod pull;
mod push;
mod rename;
mod replace;
mod target;
mod tree;
mod upsert;
mod write;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use aggregate::Transformation;
use array_filter::ArrayFilters;
use document::{DOCUMENT_BYTES_MAX, DOCUMENT_BYTES_MAX_INTERNAL, Doc, ObjectId, Value};
use error::{Code, Error, Result};
use operator::Operator;
use parse::Operators;
pub use push::UnsortedPush;
use query::{Context, MatchDetails, Predicate};
use replace::Replacement;
pub use replace::check_id;
use target::UpdateRun;
use tree::{FieldNodes, UpdateNode};
use values::text;

#[derive(Clone, Debug)]
pub struct Update {
    kind: UpdateKind,
    now_ms: i64,
}

#[derive(Clone, Debug)]
enum UpdateKind {
    Operators(Operators),
    Replacement(Replacement),
    Pipeline(Transformation),
}

/// A top-level field and its new value, for stores that can set it themselves.
#[derive(Clone, Copy, Debug)]
pub struct FieldAssignment<'u> {
    pub field: &'u str,
    pub value: Value<'u>,
    /// Levels of documents and arrays within the value.
    pub levels: usize,
}

/// The outcome of applying an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateOutcome {
    /// The document did not change (`nModified` does not count it); nothing was written.
    Unchanged,
    /// The new document was written.
    Changed,
}

impl Update {
    /// Parses a statement's `u` (document or array) with its `arrayFilters`, if any.
    ///
    /// Fails with 9 for an unknown operator, 40 for operators that contradict each other, and 2,
    /// 14, 52 and 56 for bad arguments and paths.
    pub fn parse(update: Value<'_>, array_filters: Option<Doc<'_>>, context: &Context) -> Result<Update> {
        let kind = match update {
            Value::Document(spec) if spec.first().is_some_and(|first| first.key_bytes().starts_with(b"$")) => {
                UpdateKind::Operators(parse::parse_operators(spec, array_filters, context)?)
            }
            Value::Document(replacement) => {
                // Array filters have no effect here, but are checked.
                ArrayFilters::parse(array_filters.unwrap_or(Doc::EMPTY), context)?;
                UpdateKind::Replacement(Replacement::new(replacement))
            }
            Value::Array(_) if array_filters.is_some_and(|filters| !filters.is_empty()) => {
                ArrayFilters::parse(array_filters.unwrap_or(Doc::EMPTY), context)?;
                return Err(Error::failed_to_parse("arrayFilters may not be specified for pipeline-style updates"));
            }
            Value::Array(stages) => UpdateKind::Pipeline(Transformation::parse(stages, context)?),
            _ => return Err(Error::failed_to_parse("Update argument must be either an object or an array")),
        };
        Ok(Update { kind, now_ms: context.now_ms })
    }

    /// Returns whether this is a whole document rather than operators or a pipeline; such an update
    /// cannot be `multi`.
    pub fn is_replacement(&self) -> bool {
        matches!(self.kind, UpdateKind::Replacement(_))
    }

    /// Returns whether this consists of operators.
    pub fn has_operators(&self) -> bool {
        matches!(self.kind, UpdateKind::Operators(_))
    }

    /// Returns the `$push` on a top-level field, if the update consists of it only and a store can
    /// execute it.
    pub fn as_unsorted_push(&self) -> Option<UnsortedPush<'_>> {
        match self.only_fields()? {
            [(name, UpdateNode::Leaf(Operator::Push(push)))] if is_plain(name) => push.as_unsorted(name),
            _ => None,
        }
    }

    /// Returns the top-level fields that `$set` assigns, in the order in which new ones are added;
    /// `None` if the update has other parts, or is empty.
    pub fn as_assignments(&self) -> Option<Vec<FieldAssignment<'_>>> {
        let fields = self.only_fields().filter(|fields| !fields.is_empty())?;
        let set = fields.iter().map(|(name, node)| match node {
            UpdateNode::Leaf(Operator::Set(operand)) if is_plain(name) => {
                Some(FieldAssignment { field: name, value: operand.value.as_value(), levels: operand.levels })
            }
            _ => None,
        });
        set.collect()
    }

    fn only_fields(&self) -> Option<&[(Box<str>, UpdateNode)]> {
        match &self.kind {
            UpdateKind::Operators(Operators { tree: FieldNodes { children, positional: None, .. }, .. }) => {
                Some(children)
            }
            _ => None,
        }
    }

    /// Returns whether [`Update::apply`] requires details from [`Predicate::matches_with`].
    pub fn needs_match_details(&self) -> bool {
        matches!(&self.kind, UpdateKind::Operators(operators) if operators.needs_matched_index)
    }

    /// Appends the updated document to `out`, with `_id` unchanged. After an error `out` may
    /// contain part of it.
    ///
    /// Fails with 66 (`_id` would change), 28 (the path cannot be created), 14 and 2 (an operator
    /// does not apply to the value), 17419 and 10334 (too large), 15 (too deep), and like
    /// conditions in `$pull` and `arrayFilters`.
    pub fn apply(&self, document: Doc<'_>, details: &MatchDetails, out: &mut Vec<u8>) -> Result<UpdateOutcome> {
        let start = out.len();
        let changed = match &self.kind {
            UpdateKind::Replacement(replacement) => replacement.apply(document, self.now_ms, out)?,
            UpdateKind::Pipeline(transformation) => apply_pipeline(transformation, document, false, out)?,
            UpdateKind::Operators(operators) => {
                let mut digits = itoa::Buffer::new();
                let matched = details.array_index.map(|index| digits.format(index) as &str);
                let run = self.new_run(operators, document, matched);
                apply::change_root(&operators.tree, &run, out)?
            }
        };
        if !changed {
            out.truncate(start);
            return Ok(UpdateOutcome::Unchanged);
        }
        check_size(&out[start..], false)?;
        Ok(UpdateOutcome::Changed)
    }

    /// Writes the document that an upsert inserts: the predicate's equalities, then the update,
    /// including `$setOnInsert`. `new_id` is the `_id` if neither contains one.
    ///
    /// Fails like [`Update::apply`], and with 54, 111 and 224 for filters that no document can be
    /// built from.
    pub fn upsert(&self, predicate: &Predicate, new_id: ObjectId, out: &mut Vec<u8>) -> Result<()> {
        let mut document = Vec::new();
        upsert::write_equalities(predicate, self.is_replacement(), &mut document)?;
        let base = Doc::from_bytes(&document).unwrap_or(Doc::EMPTY);
        let mut changed = Vec::new();
        let applied = match &self.kind {
            UpdateKind::Replacement(replacement) => replacement.write_upsert(base, self.now_ms, &mut changed)?,
            UpdateKind::Pipeline(transformation) => apply_pipeline(transformation, base, true, &mut changed)?,
            UpdateKind::Operators(operators) => {
                let run = UpdateRun {
                    is_upsert: true,
                    is_id_undetermined: base.get("_id").is_none(),
                    ..self.new_run(operators, base, None)
                };
                apply::change_root(&operators.tree, &run, &mut changed)?
            }
        };
        let document = if applied { Doc::from_bytes(&changed).unwrap_or(Doc::EMPTY) } else { base };
        let start = out.len();
        upsert::write_with_id(document, new_id, out)?;
        check_size(&out[start..], true)
    }

    fn new_run<'r>(&self, operators: &'r Operators, root: Doc<'r>, matched: Option<&'r str>) -> UpdateRun<'r> {
        let filters = &operators.filters;
        UpdateRun {
            root,
            matched_index: matched,
            is_upsert: false,
            is_id_undetermined: false,
            in_tree_order: false,
            now_ms: self.now_ms,
            filters,
        }
    }
}

/// Returns whether a path is a field's name other than `_id`.
fn is_plain(name: &str) -> bool {
    !name.starts_with('$') && name != "_id"
}

/// Writes the result of a pipeline, with the `_id` preserved and first; returns `false` if the
/// document is unchanged.
fn apply_pipeline(
    transformation: &Transformation,
    document: Doc<'_>,
    inserting: bool,
    out: &mut Vec<u8>,
) -> Result<bool> {
    let mut transformed = Vec::new();
    transformation.apply(document, &mut transformed)?;
    let transformed = Doc::from_bytes(&transformed).unwrap_or(Doc::EMPTY);
    let (old_id, new_id) = (document.get("_id"), transformed.get("_id"));
    if inserting && transformed != document {
        replace::check_new_id(old_id, new_id)?;
    }
    replace::check_same_id(old_id, new_id)?;
    if transformed == document {
        return Ok(false);
    }
    target::check_document_depth(transformed)?;
    match new_id.or(old_id) {
        Some(id) => replace::write_id_first(transformed, id, out),
        None => out.extend_from_slice(transformed.as_bytes()),
    }
    Ok(true)
}

fn check_size(document: &[u8], inserting: bool) -> Result<()> {
    let size = document.len();
    if size <= DOCUMENT_BYTES_MAX {
        return Ok(());
    }
    if size <= DOCUMENT_BYTES_MAX_INTERNAL {
        let (code, what) = match inserting {
            true => (17420, "Document to upsert"),
            false => (17419, "Resulting document after update"),
        };
        return Err(Error::new(Code(code), format!("{what} is larger than {DOCUMENT_BYTES_MAX}")));
    }
    let first = Doc::from_prefix(document).and_then(Doc::first);
    let first = first.map_or_else(|| "EOO".to_owned(), |first| text::element(first.key(), first.value()).to_string());
    Err(Error::new(
        Code::BSON_OBJECT_TOO_LARGE,
        format!(
            "BSONObj size: {size} (0x{size:X}) is invalid. Size must be between 0 and {DOCUMENT_BYTES_MAX_INTERNAL}(16MB) \
             First element: {first}"
        ),
    ))
}
