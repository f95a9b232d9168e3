//! A projection as a tree of field names.

use super::slice::Slice;
use crate::{Expression, Item, Predicate};
use document::{Doc, Value};
use error::{Code, Error, Result};
use steps::Counted;
use values::name_index::NameIndex;

/// The treatment of fields that the tree does not name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ProjectionMode {
    /// They are excluded.
    Include,
    /// They are included.
    #[default]
    Exclude,
}

/// The named fields of one level, in the order of the specification.
#[derive(Clone, Debug, Default)]
pub(super) struct ProjectionFields {
    fields: Vec<ProjectionField>,
    indices: NameIndex,
    /// Whether a field below is computed, so that the level is created even if the document has
    /// none.
    pub has_computed: bool,
}

#[derive(Clone, Debug)]
pub(super) struct ProjectionField {
    pub name: Box<str>,
    pub action: FieldAction,
    /// Whether this is on the path of the positional operator: the first array here is reduced to
    /// the matching element.
    pub positional: bool,
}

#[derive(Clone, Debug)]
pub(super) enum FieldAction {
    Include,
    Exclude,
    Nested(ProjectionFields),
    Compute(Expression),
    Slice(Slice),
    /// The first element that matches; the predicate applies to a document that contains the array
    /// only.
    ElementMatch(Predicate),
}

/// Maximal number of components of a path, all levels together. It bounds the tree's depth, and so
/// recursion.
const COMPONENTS_MAX: usize = 200;

impl ProjectionFields {
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &ProjectionField> {
        self.fields.iter()
    }

    #[inline]
    pub fn find(&self, name: &[u8]) -> Option<&ProjectionField> {
        self.fields.get(self.index_of(name)?)
    }

    #[inline]
    fn index_of(&self, name: &[u8]) -> Option<usize> {
        self.indices.index_of(name, self.fields.iter().map(|field| &*field.name))
    }

    /// Passes each action with its dotted path to `take`.
    pub fn each_path(&self, take: &mut dyn FnMut(&str, &FieldAction)) {
        for field in &self.fields {
            steps::step();
            match &field.action {
                FieldAction::Nested(fields) => {
                    fields.each_path(&mut |path, action| take(&format!("{}.{path}", field.name), action));
                }
                action => take(&field.name, action),
            }
        }
    }

    pub fn each_expression_mut(&mut self, change: &mut dyn FnMut(&mut Expression)) {
        for field in &mut self.fields {
            steps::step();
            match &mut field.action {
                FieldAction::Nested(fields) => fields.each_expression_mut(change),
                FieldAction::Compute(expression) => change(expression),
                _ => {}
            }
        }
    }

    /// Returns whether a path has an action other than a level of fields.
    pub fn has_leaf(&self, path: &[&str]) -> bool {
        let Some((name, rest)) = path.split_first() else { return false };
        match self.find(name.as_bytes()).map(|field| &field.action) {
            None => false,
            Some(FieldAction::Nested(fields)) => fields.has_leaf(rest),
            Some(_) => rest.is_empty(),
        }
    }

    /// Returns the first failure of an expression in the order of the specification, which MongoDB
    /// reports. The walk beside a document has the order of the document.
    pub fn first_failure(&self, document: Doc<'_>, root: Item<'_>) -> Result<()> {
        self.fields.iter().counted().try_for_each(|field| match &field.action {
            FieldAction::Compute(expression) => expression.evaluate(root).map(drop),
            FieldAction::Nested(fields) if fields.has_computed => {
                fields.first_failure_below(document.get(&field.name), root)
            }
            _ => Ok(()),
        })
    }

    fn first_failure_below(&self, current: Option<Value<'_>>, root: Item<'_>) -> Result<()> {
        match current {
            Some(Value::Document(document)) => self.first_failure(document, root),
            Some(Value::Array(array)) => {
                array.values().counted().try_for_each(|value| self.first_failure_below(Some(value), root))
            }
            _ => self.first_failure(Doc::EMPTY, root),
        }
    }

    /// Inserts an action at a path. Fails with 31249 and 31250 if another path conflicts.
    pub fn insert(&mut self, path: &[&str], action: FieldAction, positional: bool) -> Result<()> {
        if path.len() > COMPONENTS_MAX {
            return Err(Error::new(Code::OVERFLOW, "FieldPath is too long"));
        }
        self.insert_at(path, 0, action, positional)
    }

    fn insert_at(&mut self, path: &[&str], at: usize, action: FieldAction, positional: bool) -> Result<()> {
        steps::step();
        let Some(name) = path.get(at) else { return Ok(()) };
        let is_last = at + 1 == path.len();
        self.has_computed |= matches!(action, FieldAction::Compute(_));
        let index = self.index_of(name.as_bytes());
        let Some(field) = index.and_then(|index| self.fields.get_mut(index)) else {
            return self.append(path, at, action, positional);
        };
        if is_last {
            return Err(Error::new(Code(31250), format!("Path collision at {}", path.join("."))));
        }
        field.positional |= positional;
        match &mut field.action {
            FieldAction::Nested(fields) => fields.insert_at(path, at + 1, action, positional),
            _ => {
                // At whatever depth the paths conflict, MongoDB reports all components after the
                // first.
                let (whole, rest) = (path.join("."), path[1..].join("."));
                Err(Error::new(Code(31249), format!("Path collision at {whole} remaining portion {rest}")))
            }
        }
    }

    fn append(&mut self, path: &[&str], at: usize, action: FieldAction, positional: bool) -> Result<()> {
        let action = if at + 1 == path.len() {
            action
        } else {
            let mut fields = ProjectionFields::default();
            fields.insert_at(path, at + 1, action, positional)?;
            FieldAction::Nested(fields)
        };
        self.indices.push(path[at]);
        self.fields.push(ProjectionField { name: path[at].into(), action, positional });
        Ok(())
    }
}
