//! `$addFields` and `$set`: add fields computed from the document to it.

use super::field_tree::{FieldTree, PathSet};
use document::{DEPTH_MAX, Doc, DocWriter, Value};
use error::{Code, Error, Result};
use query::Changes;
use query::expression::check_field_path;
use query::{Context, Expression, Item};
use steps::Counted;
use values::text;

#[derive(Debug)]
pub(crate) struct AddFields {
    fields: FieldTree<Expression>,
}

impl AddFields {
    /// Parses the stage. `stage` is the name that the client used.
    pub fn parse(stage: &str, spec: Value<'_>, context: &Context) -> Result<AddFields> {
        let Value::Document(spec) = spec else {
            let kind = spec.kind().alias();
            return Err(Error::new(Code(40272), format!("{stage} specification stage must be an object, got {kind}")));
        };
        let parsed = Self::parse_fields(spec, context);
        parsed.map_err(|error| error.context(&format!("Invalid {stage} :: caused by :: ")))
    }

    fn parse_fields(spec: Doc<'_>, context: &Context) -> Result<AddFields> {
        let mut paths = FieldParser { spec, fields: Vec::new(), paths: PathSet::default() };
        spec.iter().counted().try_for_each(|(path, value)| paths.add(path, value))?;
        let mut fields = FieldTree::default();
        for (path, value) in paths.fields {
            fields.insert(&path, Expression::parse(value, context)?);
        }
        Ok(AddFields { fields })
    }

    /// Returns the effect of the stage on paths.
    pub fn changes(&self) -> Changes {
        let mut changes = Changes::default();
        self.fields.each_path(&mut |path, expression| match expression.as_field() {
            Some(old) if !old.contains('.') => changes.renamed.push((path.to_owned(), old)),
            _ => changes.written.push(path.to_owned()),
        });
        changes
    }

    pub fn apply<'d>(&self, item: impl Into<Item<'d>>, out: &mut Vec<u8>) -> Result<()> {
        let item = item.into();
        let applied = self.fields.apply(item.document, &mut DocWriter::begin(out), &mut |expression, name, writer| {
            expression.evaluate_into(item, writer, name)
        });
        applied.or_else(|error| {
            self.fields.first_failure(item.document, &mut |expression| expression.evaluate(item).map(drop))?;
            Err(error)
        })
    }
}

/// The paths of a specification. Conflicts between them are reported before any value is parsed.
struct FieldParser<'p> {
    spec: Doc<'p>,
    fields: Vec<(String, Value<'p>)>,
    paths: PathSet,
}

impl<'p> FieldParser<'p> {
    fn add(&mut self, path: &str, value: Value<'p>) -> Result<()> {
        check_field_path(path)?;
        if path.split('.').count() > DEPTH_MAX {
            return Err(Error::new(Code(5984700), "Field path is too long"));
        }
        if let Value::Document(nested) = value {
            let has_operator = nested.elements().counted().any(|element| element.key_bytes().starts_with(b"$"));
            if nested.is_empty() {
                let message = format!("an empty object is not a valid value. Found empty object at path {path}");
                return Err(Error::new(Code(40180), message));
            }
            if has_operator && nested.elements().nth(1).is_some() {
                return Err(self.several_operators(path, nested));
            }
            if !has_operator {
                return nested
                    .iter()
                    .counted()
                    .try_for_each(|(name, value)| self.add(&format!("{path}.{name}"), value));
            }
        }
        self.check_conflict(path)?;
        self.fields.push((path.to_owned(), value));
        Ok(())
    }

    fn several_operators(&self, path: &str, nested: Doc<'_>) -> Error {
        Error::new(
            Code(40181),
            format!(
                "an expression specification must contain exactly one field, the name of the expression. Found {} \
                 fields in {}, while parsing object {{ {path}: {} }}",
                nested.elements().count(),
                text::document(nested),
                text::document(nested)
            ),
        )
    }

    fn check_conflict(&mut self, path: &str) -> Result<()> {
        match self.paths.insert(path).and_then(|index| self.fields.get(index)) {
            None => Ok(()),
            Some((other, _)) => Err(Error::new(
                Code(40176),
                format!(
                    "specification contains two conflicting paths. Cannot specify both '{path}' and '{other}': {}",
                    text::document(self.spec)
                ),
            )),
        }
    }
}

/// Writes `document` with `value` at a path; `None` removes the field. Values on the path that are
/// no documents are replaced by one.
pub(super) fn set_path(document: Doc<'_>, path: &[Box<str>], value: Option<Value<'_>>, writer: &mut DocWriter<'_>) {
    let Some((name, rest)) = path.split_first() else { return };
    let mut found = false;
    for element in document.elements() {
        steps::step();
        if found || element.key_bytes() != name.as_bytes() {
            writer.append_element(element);
            continue;
        }
        found = true;
        set_field(name, Some(element.value()), rest, value, writer);
    }
    if !found {
        set_field(name, None, rest, value, writer);
    }
}

fn set_field(
    name: &str,
    current: Option<Value<'_>>,
    rest: &[Box<str>],
    value: Option<Value<'_>>,
    writer: &mut DocWriter<'_>,
) {
    match (rest.is_empty(), current) {
        (true, _) => value.into_iter().for_each(|value| writer.append(name, value)),
        (false, Some(Value::Document(document))) => set_path(document, rest, value, &mut writer.document(name)),
        (false, _) if value.is_none() => current.into_iter().for_each(|current| writer.append(name, current)),
        (false, _) => set_path(Doc::EMPTY, rest, value, &mut writer.document(name)),
    }
}
