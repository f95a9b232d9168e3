//! `$unwind`: one document per element of an array.

use super::add_fields::set_path;
use super::flow::Demand;
use document::{Doc, DocWriter, Kind, Value};
use error::{Code, Error, Result};
use query::expression::check_field_path;
use std::borrow::Cow;

#[derive(Debug)]
pub(crate) struct Unwind {
    path: Vec<Box<str>>,
    /// The path of the element's position.
    index_path: Option<Vec<Box<str>>>,
    /// Whether documents without an element are retained.
    retain_empty: bool,
}

impl Unwind {
    pub fn parse(spec: Value<'_>) -> Result<Unwind> {
        let (mut path, mut index, mut preserve) = (None, None, false);
        match spec {
            _ if spec.kind() == Kind::String => path = spec.as_name(),
            Value::Document(options) => {
                for (name, value) in options.iter() {
                    match name {
                        "path" => path = Some(string(28808, "expected a string as the path for $unwind stage", value)?),
                        "preserveNullAndEmptyArrays" => preserve = boolean(value)?,
                        "includeArrayIndex" => index = Some(index_name(value)?),
                        _ => {
                            let message = format!("unrecognized option to $unwind stage: {name}");
                            return Err(Error::new(Code(28811), message));
                        }
                    }
                }
            }
            other => {
                let kind = other.kind().alias();
                let message =
                    format!("expected either a string or an object as specification for $unwind stage, got {kind}");
                return Err(Error::new(Code(15981), message));
            }
        }
        let path = path.filter(|path| !path.is_empty());
        let path = path.ok_or_else(|| Error::new(Code(28812), "no path specified to $unwind stage"))?;
        let bare = path.strip_prefix('$').ok_or_else(|| {
            Error::new(Code(28818), format!("path option to $unwind stage should be prefixed with a '$': {path}"))
        })?;
        Ok(Unwind {
            path: components(bare)?,
            index_path: index.map(|index| components(&index)).transpose()?,
            retain_empty: preserve,
        })
    }

    /// Returns the paths that the stage writes to.
    pub fn written_paths(&self) -> Vec<String> {
        std::iter::once(&self.path).chain(&self.index_path).map(|path| path.join(".")).collect()
    }

    /// Passes each document made from `document` to `next`, as long as it accepts more.
    pub fn for_each(
        &self,
        document: Doc<'_>,
        scratch: &mut Vec<u8>,
        next: &mut dyn FnMut(Doc<'_>) -> Result<Demand>,
    ) -> Result<Demand> {
        match self.value_at(document) {
            Some(Value::Array(array)) if !array.is_empty() => {
                for (index, value) in (0_i64..).zip(array.values()) {
                    steps::step();
                    // The rest of the document is copied for each element.
                    steps::bytes(document.size() - array.size());
                    if self.write(document, Some(value), Some(index), scratch, next)? == Demand::Enough {
                        return Ok(Demand::Enough);
                    }
                }
                Ok(Demand::More)
            }
            // If the position is written to the same path, it takes that position rather than the
            // last.
            Some(Value::Array(_))
                if self.retain_empty && self.index_path.as_ref().is_some_and(|index| index.starts_with(&self.path)) =>
            {
                self.write(document, Some(Value::Null), None, scratch, next)
            }
            Some(Value::Array(_)) if self.retain_empty => self.write(document, None, None, scratch, next),
            None | Some(Value::Null | Value::Undefined | Value::Array(_)) if !self.retain_empty => Ok(Demand::More),
            _ if self.index_path.is_none() => next(document),
            _ => {
                scratch.clear();
                self.write_index(document, None, scratch);
                next(Doc::from_bytes(scratch).unwrap_or(Doc::EMPTY))
            }
        }
    }

    /// Returns the value at the path; does not descend into arrays.
    fn value_at<'d>(&self, document: Doc<'d>) -> Option<Value<'d>> {
        self.path.iter().try_fold(Value::Document(document), |value, name| value.as_document()?.get(name))
    }

    fn write(
        &self,
        document: Doc<'_>,
        value: Option<Value<'_>>,
        index: Option<i64>,
        scratch: &mut Vec<u8>,
        next: &mut dyn FnMut(Doc<'_>) -> Result<Demand>,
    ) -> Result<Demand> {
        scratch.clear();
        set_path(document, &self.path, value, &mut DocWriter::begin(scratch));
        if self.index_path.is_some() {
            let end = scratch.len();
            let unwound = scratch.clone();
            self.write_index(Doc::from_bytes(&unwound).unwrap_or(Doc::EMPTY), index, scratch);
            scratch.drain(..end);
        }
        next(Doc::from_bytes(scratch).unwrap_or(Doc::EMPTY))
    }

    fn write_index(&self, document: Doc<'_>, index: Option<i64>, out: &mut Vec<u8>) {
        let index = index.map_or(Value::Null, Value::Int64);
        if let Some(path) = &self.index_path {
            set_path(document, path, Some(index), &mut DocWriter::begin(out));
        }
    }
}

fn components(path: &str) -> Result<Vec<Box<str>>> {
    check_field_path(path)?;
    Ok(path.split('.').map(Into::into).collect())
}

fn string<'v>(code: i32, expected: &str, value: Value<'v>) -> Result<Cow<'v, str>> {
    let kind = value.kind().alias();
    value.as_name().ok_or_else(|| Error::new(Code(code), format!("{expected}, got {kind}")))
}

fn boolean(value: Value<'_>) -> Result<bool> {
    match value {
        Value::Boolean(flag) => Ok(flag),
        other => Err(Error::new(
            Code(28809),
            format!(
                "expected a boolean for the preserveNullAndEmptyArrays option to $unwind stage, got {}",
                other.kind().alias()
            ),
        )),
    }
}

fn index_name(value: Value<'_>) -> Result<Cow<'_, str>> {
    // The two blanks are the server's.
    let expected = "expected a non-empty string for the includeArrayIndex  option to $unwind stage";
    let name = string(28810, expected, value)?;
    if name.is_empty() {
        return Err(Error::new(Code(28810), format!("{expected}, got string")));
    }
    if name.starts_with('$') {
        let message = format!("includeArrayIndex option to $unwind stage should not be prefixed with a '$': {name}");
        return Err(Error::new(Code(28822), message));
    }
    Ok(name)
}
