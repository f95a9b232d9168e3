//! The `projection` of a command: which fields of a document are returned.
//!
//! A projection is a tree of paths that is walked once beside the document; the included parts are
//! copied as bytes. In reading order: [`parse`](mod@parse) (from the specification to the tree),
//! [`tree`], [`apply`] (the walk).
//!
//! The stages `$project` and `$unset` are projections too, without the features of `find`: the
//! short form of `$slice`, `$elemMatch` and the positional `$`.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/operator/projection/>; where it is
//! silent, the behavior of a 6.0 server.

mod apply;
mod parse;
mod slice;
mod tree;

#[cfg(test)]
mod tests;

use crate::changes::Changes;
use crate::metadata::{Item, Meta, Needs};
use crate::{Context, Expression, MatchDetails, Predicate};
use document::{Doc, DocWriter, Value};
use error::{Code, Error, Result};
use std::collections::BTreeSet;
use std::sync::Arc;
use tree::{FieldAction, ProjectionFields, ProjectionMode};

#[derive(Clone, Debug, Default)]
pub struct Projection {
    mode: ProjectionMode,
    root: ProjectionFields,
    /// The filter that the positional operator refers to, with its conditions in the order given:
    /// if several match an array element, the last one determines the position.
    positional: Option<Arc<Predicate>>,
    needs: Needs,
    /// Whether the index key is returned, and of the specification metadata only (`returnKey`).
    returns_index_key: bool,
    /// Whether the record's number is appended (`showRecordId`).
    appends_record_id: bool,
}

impl Projection {
    /// Parses the projection of a `find` or `findAndModify`. The positional operator `$` refers to
    /// `filter`, the command's filter, which must have been parsed before.
    ///
    /// Fails with 31253 and 31254 for a mixture of inclusion and exclusion, 31249 and 31250 for
    /// conflicting paths, and like expressions.
    pub fn parse(spec: Doc<'_>, filter: Doc<'_>, context: &Context) -> Result<Projection> {
        parse::ProjectionParser::for_find(context, filter).parse(spec)
    }

    /// Parses the operand of a `$project` stage. Fails like [`Projection::parse`], and with 51272
    /// for an empty one.
    pub fn parse_stage(spec: Doc<'_>, context: &Context) -> Result<Projection> {
        if spec.is_empty() {
            return Err(Error::new(Code(51272), "projection specification must have at least one field"));
        }
        parse::ProjectionParser::for_stage(context).parse(spec)
    }

    /// Returns a projection to the key of the index that was read (`returnKey`).
    #[must_use]
    pub fn into_index_key(self) -> Projection {
        let needs = self.needs.and(Needs::of(Meta::IndexKey));
        Projection { returns_index_key: true, appends_record_id: false, positional: None, needs, ..self }
    }

    /// Returns whether documents are replaced by their index keys.
    pub fn returns_index_key(&self) -> bool {
        self.returns_index_key
    }

    /// Returns a projection that appends the record's number to the document's fields
    /// (`showRecordId`).
    #[must_use]
    pub fn with_record_id(self) -> Projection {
        let needs = self.needs.and(Needs::of(Meta::RecordId));
        Projection { appends_record_id: true, needs, ..self }
    }

    /// Returns whether documents are returned unchanged.
    pub fn is_identity(&self) -> bool {
        self.mode == ProjectionMode::Exclude
            && self.root.is_empty()
            && !self.returns_index_key
            && !self.appends_record_id
    }

    /// Returns the metadata (`$meta`) that the projection reads.
    pub fn needs(&self) -> Needs {
        self.needs
    }

    /// Returns whether only named fields are included.
    pub fn is_inclusion(&self) -> bool {
        self.mode == ProjectionMode::Include
    }

    /// Returns whether the projection has the positional operator, which reads the matched
    /// document.
    pub fn is_positional(&self) -> bool {
        self.positional.is_some()
    }

    /// Returns the paths that are read of a document; `None` if it is read whole.
    pub fn paths_read(&self) -> Option<BTreeSet<String>> {
        if self.mode == ProjectionMode::Exclude || self.is_positional() {
            return None;
        }
        let mut paths = Some(BTreeSet::new());
        self.root.each_path(&mut |path, action| match (action, &mut paths) {
            (FieldAction::Include, Some(paths)) => drop(paths.insert(path.to_owned())),
            (FieldAction::Compute(expression), Some(known)) => match expression.paths() {
                Some(read) => known.extend(read),
                None => paths = None,
            },
            (_, filter) => *filter = None,
        });
        paths
    }

    /// Returns the effect of the projection, as a stage, on paths.
    pub fn changes(&self) -> Changes {
        let (mut changes, mut included) = (Changes::default(), Vec::new());
        self.root.each_path(&mut |path, action| match action {
            FieldAction::Include => included.push(path.to_owned()),
            FieldAction::Compute(expression) => match expression.as_field() {
                Some(old) if !old.contains('.') => {
                    changes.renamed.push((path.to_owned(), old));
                }
                _ => changes.written.push(path.to_owned()),
            },
            _ => changes.written.push(path.to_owned()),
        });
        changes.retained = (self.mode == ProjectionMode::Include).then_some(included);
        changes
    }

    /// Returns whether MongoDB's second engine accepts the projection as a stage
    /// ([`crate::expression::second_engine`]).
    pub fn is_supported_by_second_engine(&self) -> bool {
        let mut known = self.mode == ProjectionMode::Include && self.needs == Needs::NONE;
        self.root.each_path(&mut |_, action| {
            known &= match action {
                FieldAction::Include | FieldAction::Exclude | FieldAction::Nested(_) => true,
                FieldAction::Compute(expression) => expression.is_supported_by_second_engine(),
                FieldAction::Slice(_) | FieldAction::ElementMatch(_) => false,
            };
        });
        known
    }

    pub fn use_second_engine(&mut self) {
        self.root.each_expression_mut(&mut Expression::use_second_engine);
    }

    /// Appends the projected document to `out`. After an error `out` may contain part of it.
    ///
    /// Fails like expressions, and with 51246 and 51247 if the positional operator finds no
    /// element.
    pub fn apply<'d>(&self, item: impl Into<Item<'d>>, out: &mut Vec<u8>) -> Result<()> {
        let root = item.into();
        let mut details = MatchDetails::default();
        if let Some(filter) = &self.positional {
            filter.matches_with(root.document, &mut details)?;
        }
        let walk = apply::ProjectionWalk { mode: self.mode, root, array_index: details.array_index };
        let mut writer = DocWriter::begin(out);
        if self.returns_index_key {
            return self.index_key(&walk, &mut writer);
        }
        walk.document(&self.root, root.document, self.is_positional(), &mut writer).or_else(|error| {
            self.root.first_failure(root.document, root)?;
            Err(error)
        })?;
        if self.appends_record_id
            && let Some(number) = root.metadata.get(Meta::RecordId)
        {
            writer.append("$recordId", number);
        }
        Ok(())
    }

    fn index_key(&self, walk: &apply::ProjectionWalk<'_>, out: &mut DocWriter<'_>) -> Result<()> {
        if let Some(Value::Document(key)) = walk.root.metadata.get(Meta::IndexKey) {
            key.elements().for_each(|element| out.append_element(element));
        }
        if self.needs.contains(Meta::SortKey) {
            walk.write_remaining_computed(&self.root, &hashbrown::HashSet::new(), out)
        } else {
            Ok(())
        }
    }
}
