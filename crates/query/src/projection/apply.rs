//! The walk of a projection's tree beside a document.
//!
//! Fields are written in the document's order, computed ones after them in the order of the
//! specification. At a level that includes unnamed fields, a computed field takes the position of
//! the one it replaces.

use super::tree::{FieldAction, ProjectionField, ProjectionFields, ProjectionMode};
use crate::metadata::Item;
use document::{ArrayWriter, Doc, DocWriter, Element, Kind, Value};
use error::{Code, Error, Result};
use hashbrown::HashSet;
use steps::Counted;

/// Context of the walk that is the same at every level.
pub(super) struct ProjectionWalk<'d> {
    pub mode: ProjectionMode,
    /// The whole document, which expressions refer to.
    pub root: Item<'d>,
    pub array_index: Option<usize>,
}

impl ProjectionWalk<'_> {
    /// Projects the fields of one document. `pick`: the first array on the positional operator's
    /// path has not been reached yet.
    pub fn document(
        &self,
        fields: &ProjectionFields,
        document: Doc<'_>,
        pick: bool,
        out: &mut DocWriter<'_>,
    ) -> Result<()> {
        let mut written = fields.has_computed.then(HashSet::new);
        for element in document.elements() {
            steps::step();
            let Some(field) = fields.find(element.key_bytes()) else {
                if self.mode != ProjectionMode::Include {
                    out.append_element(element);
                }
                continue;
            };
            let is_written = self.field(field, element, pick && field.positional, out)?;
            if let (true, Some(written)) = (is_written, &mut written) {
                written.insert(std::ptr::from_ref(field));
            }
        }
        if let Some(written) = written {
            self.write_remaining_computed(fields, &written, out)?;
        } else if self.mode == ProjectionMode::Include {
            self.element_matches(fields, document, out)?;
        }
        Ok(())
    }

    /// Writes the projection of one field; returns whether its position is taken.
    fn field(
        &self,
        field: &ProjectionField,
        element: Element<'_>,
        pick: bool,
        out: &mut DocWriter<'_>,
    ) -> Result<bool> {
        match &field.action {
            FieldAction::Include if pick && element.kind == Kind::Array => {
                let picked = self.positional_element(nested(element))?;
                out.array(element.key()).push_raw(picked.kind, picked.raw_value());
            }
            FieldAction::Include => out.append_element(element),
            FieldAction::Exclude => {}
            FieldAction::Nested(fields) => return self.nested_fields(fields, element, pick, out),
            FieldAction::Slice(slice) if element.kind == Kind::Array => {
                let mut array = out.array(element.key());
                let elements = slice.elements(nested(element)).counted();
                elements.for_each(|element| array.push_raw(element.kind, element.raw_value()));
            }
            FieldAction::Slice(_) => out.append_element(element),
            // Computed fields take the position of a field only at levels that include unnamed
            // fields.
            FieldAction::Compute(_) | FieldAction::ElementMatch(_) if self.mode == ProjectionMode::Include => {
                return Ok(false);
            }
            FieldAction::Compute(expression) => expression.evaluate_into(self.root, out, element.key())?,
            FieldAction::ElementMatch(_) => self.element_match(field, element, out)?,
        }
        Ok(true)
    }

    fn nested_fields(
        &self,
        fields: &ProjectionFields,
        element: Element<'_>,
        pick: bool,
        out: &mut DocWriter<'_>,
    ) -> Result<bool> {
        match element.kind {
            Kind::Document => self.document(fields, nested(element), pick, &mut out.document(element.key()))?,
            Kind::Array if pick => {
                let picked = self.positional_element(nested(element))?;
                if !matches!(picked.kind, Kind::Document | Kind::Array) && !fields.has_computed {
                    return Err(positional_mismatch());
                }
                self.array_element(fields, picked, &mut out.array(element.key()))?;
            }
            Kind::Array => self.array(fields, nested(element), &mut out.array(element.key()))?,
            _ if fields.has_computed => {
                self.write_remaining_computed(fields, &HashSet::new(), &mut out.document(element.key()))?;
            }
            _ if self.mode == ProjectionMode::Include => return Ok(false),
            _ => out.append_element(element),
        }
        Ok(true)
    }

    fn array(&self, fields: &ProjectionFields, array: Doc<'_>, out: &mut ArrayWriter<'_>) -> Result<()> {
        array.elements().counted().try_for_each(|element| self.array_element(fields, element, out))
    }

    fn array_element(&self, fields: &ProjectionFields, element: Element<'_>, out: &mut ArrayWriter<'_>) -> Result<()> {
        match element.kind {
            Kind::Document => self.document(fields, nested(element), false, &mut out.document())?,
            Kind::Array => self.array(fields, nested(element), &mut out.array())?,
            _ if fields.has_computed => self.write_remaining_computed(fields, &HashSet::new(), &mut out.document())?,
            _ if self.mode == ProjectionMode::Include => {}
            _ => out.push_raw(element.kind, element.raw_value()),
        }
        Ok(())
    }

    /// Appends the computed fields that have no position yet.
    pub fn write_remaining_computed(
        &self,
        fields: &ProjectionFields,
        written: &HashSet<*const ProjectionField>,
        out: &mut DocWriter<'_>,
    ) -> Result<()> {
        for field in fields.iter().counted().filter(|field| !written.contains(&std::ptr::from_ref(*field))) {
            match &field.action {
                FieldAction::Compute(expression) => expression.evaluate_into(self.root, out, &field.name)?,
                FieldAction::Nested(inner) if inner.has_computed => {
                    self.write_remaining_computed(inner, &HashSet::new(), &mut out.document(&field.name))?;
                }
                FieldAction::ElementMatch(_) if self.mode == ProjectionMode::Include => {
                    if let Some(element) = self.root.document.element(&field.name) {
                        self.element_match(field, element, out)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Appends the elements found by `$elemMatch`, on a level without other computed fields.
    fn element_matches(&self, fields: &ProjectionFields, document: Doc<'_>, out: &mut DocWriter<'_>) -> Result<()> {
        for field in fields.iter().counted().filter(|field| matches!(field.action, FieldAction::ElementMatch(_))) {
            if let Some(element) = document.element(&field.name) {
                self.element_match(field, element, out)?;
            }
        }
        Ok(())
    }

    fn element_match(&self, field: &ProjectionField, element: Element<'_>, out: &mut DocWriter<'_>) -> Result<()> {
        let FieldAction::ElementMatch(predicate) = &field.action else { return Ok(()) };
        let mut details = crate::MatchDetails::default();
        if element.kind != Kind::Array || !predicate.matches_with(self.root.document, &mut details)? {
            return Ok(());
        }
        let found = details.array_index.and_then(|index| nested(element).elements().counted().nth(index));
        if let Some(found) = found {
            out.array(element.key()).push_raw(found.kind, found.raw_value());
        }
        Ok(())
    }

    /// Returns the element that the positional operator selects.
    fn positional_element<'d>(&self, array: Doc<'d>) -> Result<Element<'d>> {
        let index = self.array_index.ok_or_else(|| {
            let message = "positional operator '.$' couldn't find a matching element in the array";
            Error::new(Code(51246), message)
        })?;
        array.elements().counted().nth(index).ok_or_else(positional_mismatch)
    }
}

fn positional_mismatch() -> Error {
    Error::new(Code(51247), "positional operator '.$' element mismatch")
}

fn nested(element: Element<'_>) -> Doc<'_> {
    match element.value() {
        Value::Document(document) | Value::Array(document) => document,
        _ => Doc::EMPTY,
    }
}
