//! `$project`, `$unset` and `$replaceRoot`: replace each document by another.

use super::flow::{LEVELS_MAX, too_deep};
use document::{Doc, DocBuf, Kind, Value};
use error::{Code, Error, Result};
use query::Changes;
use query::expression::Evaluated;
use query::metadata::{Item, Needs};
use query::{Context, Expression, Projection};
use steps::Counted;
use values::text;
use values::text::display;

#[derive(Debug)]
pub(crate) struct Project {
    projection: Projection,
}

/// Fails with 15 for an expression with more levels than a document may have, written out with
/// arguments in arrays.
fn check_levels(fields: Doc<'_>) -> Result<()> {
    fields.values().counted().try_for_each(|value| match value {
        Value::Document(inner) if !inner.first().is_some_and(|first| first.key_bytes().starts_with(b"$")) => {
            check_levels(inner)
        }
        value if levels(value) < LEVELS_MAX => Ok(()),
        _ => Err(too_deep()),
    })
}

fn levels(value: Value<'_>) -> usize {
    steps::step();
    let deepest = |inner: Doc<'_>| inner.values().map(levels).max().unwrap_or(0);
    match value {
        Value::Document(call) if call.first().is_some_and(|first| first.key_bytes().starts_with(b"$")) => {
            2 + match call.values().next() {
                Some(Value::Array(arguments) | Value::Document(arguments))
                    if !arguments.first().is_some_and(|first| first.key_bytes().starts_with(b"$")) =>
                {
                    deepest(arguments)
                }
                Some(argument) => levels(argument),
                None => 0,
            }
        }
        Value::Document(inner) | Value::Array(inner) => 1 + deepest(inner),
        _ => 0,
    }
}

impl Project {
    pub fn parse(spec: Value<'_>, context: &Context) -> Result<Project> {
        let Value::Document(spec) = spec else {
            return Err(Error::new(Code(15969), "$project specification must be an object"));
        };
        let projection = Projection::parse_stage(spec, context).and_then(|projection| {
            check_levels(spec)?;
            Ok(projection)
        });
        Ok(Project { projection: projection.map_err(|error| error.context("Invalid $project :: caused by :: "))? })
    }

    /// Parses `$unset`: one path, or an array of them.
    pub fn parse_unset(spec: Value<'_>, context: &Context) -> Result<Project> {
        let mut paths = Vec::new();
        match spec {
            _ if spec.kind() == Kind::String => paths.extend(spec.as_name()),
            Value::Array(list) if list.is_empty() => {
                let message = "$unset specification must be a string or an array with at least one field";
                return Err(Error::new(Code(31119), message));
            }
            Value::Array(list) => {
                for path in list.values().counted() {
                    paths.push(path.as_name().ok_or_else(|| {
                        let message = "$unset specification must be a string or an array containing only string values";
                        Error::new(Code(31120), message)
                    })?);
                }
            }
            _ => return Err(Error::new(Code(31002), "$unset specification must be a string or an array")),
        }
        let spec = DocBuf::build(|writer| paths.iter().counted().for_each(|path| writer.append(path, 0)));
        let projection = Projection::parse_stage(spec.as_doc(), context);
        Ok(Project { projection: projection.map_err(|error| error.context("Invalid $unset :: caused by :: "))? })
    }

    /// Returns the effect of the stage on paths.
    pub fn changes(&self) -> Changes {
        self.projection.changes()
    }

    /// Returns the metadata that the stage reads, if it is an inclusion.
    pub fn inclusion_needs(&self) -> Option<Needs> {
        self.projection.is_inclusion().then(|| self.projection.needs())
    }

    /// Returns whether MongoDB's second engine accepts the stage: an inclusion that uses only its
    /// operators.
    pub fn is_supported_by_second_engine(&self) -> bool {
        self.projection.is_supported_by_second_engine()
    }

    pub fn use_second_engine(&mut self) {
        self.projection.use_second_engine();
    }

    pub fn apply<'d>(&self, item: impl Into<Item<'d>>, out: &mut Vec<u8>) -> Result<()> {
        self.projection.apply(item, out)
    }
}

#[derive(Debug)]
pub(crate) struct ReplaceRoot {
    expression: Expression,
    /// The name of the expression in the error message.
    expression_name: &'static str,
    /// The top-level fields that the expression reads, for the error message; `None` if it reads
    /// the whole document.
    reads: Option<Vec<String>>,
}

impl ReplaceRoot {
    /// Parses `$replaceRoot`.
    pub fn parse(spec: Value<'_>, context: &Context) -> Result<ReplaceRoot> {
        let Value::Document(spec) = spec else {
            let kind = spec.kind().alias();
            let message = format!("expected an object as specification for $replaceRoot stage, got {kind}");
            return Err(Error::new(Code(40229), message));
        };
        if let Some(unknown) = spec.elements().find(|element| element.key() != "newRoot") {
            let message = format!("BSON field '$replaceRoot.{}' is an unknown field.", unknown.key());
            return Err(Error::new(Code(40415), message));
        }
        let root = spec.get("newRoot").ok_or_else(|| {
            Error::new(Code(40414), "BSON field '$replaceRoot.newRoot' is missing but a required field")
        })?;
        Self::new(root, "'newRoot' expression ", context)
    }

    /// Parses `$replaceWith`.
    pub fn parse_with(root: Value<'_>, context: &Context) -> Result<ReplaceRoot> {
        Self::new(root, "'replacement document' ", context)
    }

    fn new(root: Value<'_>, subject: &'static str, context: &Context) -> Result<ReplaceRoot> {
        let expression = Expression::parse(root, context)?;
        let mut reads = Some(Vec::new());
        collect_fields(root, &mut reads);
        Ok(ReplaceRoot { expression, expression_name: subject, reads })
    }

    pub fn evaluate<'s>(&'s self, item: impl Into<Item<'s>>) -> Result<Evaluated<'s>> {
        self.expression.evaluate(item)
    }

    /// Returns the error for a root that is no document.
    pub fn invalid_root(&self, root: Option<Value<'_>>, document: Doc<'_>) -> Error {
        let found = root.map_or_else(|| "MISSING".to_owned(), display);
        let kind = root.map_or("missing", |root| root.kind().alias());
        let read_fields = match &self.reads {
            None => document.to_owned(),
            Some(names) => DocBuf::build(|writer| {
                let read =
                    document.elements().filter(|element| names.iter().counted().any(|name| name == element.key()));
                read.for_each(|element| writer.append_element(element));
            }),
        };
        Error::new(
            Code(40228),
            format!(
                "{} must evaluate to an object, but resulting value was: {found}. Type of resulting value: '{kind}'. \
                 Input document: {}",
                self.expression_name,
                display(Value::Document(read_fields.as_doc()))
            ),
        )
    }
}

/// Adds the top-level fields that an expression, as sent, reads.
fn collect_fields(expression: Value<'_>, reads: &mut Option<Vec<String>>) {
    match expression {
        Value::String(path) if path.starts_with("$$ROOT") || path.starts_with("$$CURRENT") => *reads = None,
        Value::String(path) if !path.starts_with("$$") => {
            let name = path.strip_prefix('$').and_then(|path| path.split('.').next());
            if let (Some(name), Some(reads)) = (name, reads) {
                reads.push(name.to_owned());
            }
        }
        Value::IllFormed { .. } => {
            expression.as_name().into_iter().for_each(|path| collect_fields(Value::String(&path), reads));
        }
        Value::Document(nested) | Value::Array(nested) => {
            nested.values().counted().for_each(|value| collect_fields(value, reads))
        }
        _ => {}
    }
}

/// Returns whether a stage's argument is written as an expression: a `$`-prefixed path or an
/// operator.
pub(super) fn is_expression(value: Value<'_>) -> bool {
    match value {
        Value::String(path) => path.starts_with('$'),
        Value::IllFormed { .. } => value.string_bytes().is_some_and(|path| path.starts_with(b"$")),
        Value::Document(operator) => operator.first().is_some_and(|first| first.key().starts_with('$')),
        _ => false,
    }
}

/// Returns `value` as quoted in error messages.
pub(super) fn quoted(value: Value<'_>) -> String {
    text::value(value).to_string()
}
