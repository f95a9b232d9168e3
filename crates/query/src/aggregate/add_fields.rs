//! `$addFields` and `$set`: fields computed from the document, put into it.

use crate::expression::check_field_path;
use crate::{Context, Expression, text};
use document::{ArrayWriter, DEPTH_MAX, Doc, DocWriter, Value};
use error::{Code, Error, Result};

#[derive(Debug)]
pub(crate) struct AddFields {
    fields: Fields,
}

/// Fields to put into a document, in the order of the specification.
type Fields = Vec<(Box<str>, Added)>;

#[derive(Debug)]
enum Added {
    Value(Expression),
    Below(Fields),
}

impl AddFields {
    /// `stage` is the name the client used.
    pub fn parse(stage: &str, spec: Value<'_>, context: &Context) -> Result<AddFields> {
        let Value::Document(spec) = spec else {
            let kind = spec.kind().alias();
            return Err(Error::new(Code(40272), format!("{stage} specification stage must be an object, got {kind}")));
        };
        let mut parser = Parser { spec, context, fields: Vec::new(), paths: Vec::new() };
        let parsed = spec.iter().try_for_each(|(path, value)| parser.add(path, value));
        parsed.map_err(|error| error.context(&format!("Invalid {stage} :: caused by :: ")))?;
        Ok(AddFields { fields: parser.fields })
    }

    /// The top-level fields that the stage writes to.
    pub fn written(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|(name, _)| &**name)
    }

    pub fn apply(&self, document: Doc<'_>, out: &mut Vec<u8>) -> Result<()> {
        add(&self.fields, document, document, &mut DocWriter::begin(out))
    }
}

struct Parser<'p> {
    spec: Doc<'p>,
    context: &'p Context,
    fields: Fields,
    /// All paths so far.
    paths: Vec<String>,
}

impl Parser<'_> {
    fn add(&mut self, path: &str, value: Value<'_>) -> Result<()> {
        check_field_path(path)?;
        if path.split('.').count() > DEPTH_MAX {
            return Err(Error::new(Code(5984700), "Field path is too long"));
        }
        if let Value::Document(nested) = value {
            let has_operator = nested.elements().any(|element| element.key_bytes().starts_with(b"$"));
            if nested.is_empty() {
                let message = format!("an empty object is not a valid value. Found empty object at path {path}");
                return Err(Error::new(Code(40180), message));
            }
            if has_operator && nested.elements().nth(1).is_some() {
                return Err(self.several_operators(path, nested));
            }
            if !has_operator {
                return nested.iter().try_for_each(|(name, value)| self.add(&format!("{path}.{name}"), value));
            }
        }
        self.check_conflict(path)?;
        let expression = Expression::parse(value, self.context)?;
        self.paths.push(path.to_owned());
        insert(&mut self.fields, path, expression);
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

    fn check_conflict(&self, path: &str) -> Result<()> {
        let collides = |other: &&String| {
            let (short, long) = if other.len() < path.len() { (other.as_str(), path) } else { (path, other.as_str()) };
            long.strip_prefix(short).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        match self.paths.iter().find(collides) {
            None => Ok(()),
            Some(other) => Err(Error::new(
                Code(40176),
                format!(
                    "specification contains two conflicting paths. Cannot specify both '{path}' and '{other}': {}",
                    text::document(self.spec)
                ),
            )),
        }
    }
}

fn insert(fields: &mut Fields, path: &str, expression: Expression) {
    let (name, rest) = match path.split_once('.') {
        Some((name, rest)) => (name, Some(rest)),
        None => (path, None),
    };
    let Some(rest) = rest else {
        fields.push((name.into(), Added::Value(expression)));
        return;
    };
    let index = fields.iter().position(|(known, _)| **known == *name).unwrap_or_else(|| {
        fields.push((name.into(), Added::Below(Vec::new())));
        fields.len() - 1
    });
    if let Added::Below(below) = &mut fields[index].1 {
        insert(below, rest, expression);
    }
}

/// Writes the elements of `document` with the fields put in; `root` is what expressions see.
fn add(fields: &Fields, document: Doc<'_>, root: Doc<'_>, writer: &mut DocWriter<'_>) -> Result<()> {
    let mut found = 0u64;
    let mut found_beyond: Vec<usize> = Vec::new();
    for element in document.elements() {
        let index = fields.iter().position(|(name, _)| name.as_bytes() == element.key_bytes());
        let Some(index) = index else {
            writer.append_element(element);
            continue;
        };
        match u32::try_from(index) {
            Ok(bit) if bit < u64::BITS => found |= 1 << bit,
            _ => found_beyond.push(index),
        }
        write(&fields[index], Some(element.value()), root, writer)?;
    }
    for (index, field) in fields.iter().enumerate() {
        let known = if index < 64 { found >> index & 1 == 1 } else { found_beyond.contains(&index) };
        if !known {
            write(field, None, root, writer)?;
        }
    }
    Ok(())
}

fn write(
    (name, added): &(Box<str>, Added),
    current: Option<Value<'_>>,
    root: Doc<'_>,
    writer: &mut DocWriter<'_>,
) -> Result<()> {
    let below = match added {
        Added::Value(expression) => return expression.evaluate_into(root, writer, name),
        Added::Below(below) => below,
    };
    match current {
        Some(Value::Document(document)) => add(below, document, root, &mut writer.document(name)),
        Some(Value::Array(array)) => add_to_elements(below, array, root, writer.array(name)),
        _ => add(below, Doc::EMPTY, root, &mut writer.document(name)),
    }
}

fn add_to_elements(fields: &Fields, array: Doc<'_>, root: Doc<'_>, mut writer: ArrayWriter<'_>) -> Result<()> {
    for value in array.values() {
        match value {
            Value::Document(document) => add(fields, document, root, &mut writer.document())?,
            Value::Array(nested) => add_to_elements(fields, nested, root, writer.array())?,
            _ => add(fields, Doc::EMPTY, root, &mut writer.document())?,
        }
    }
    Ok(())
}

/// Writes `document` with `value` at a path; `None` removes what is there. What is no document on the way gives way to one.
pub(super) fn set_path(document: Doc<'_>, path: &[Box<str>], value: Option<Value<'_>>, writer: &mut DocWriter<'_>) {
    let Some((name, rest)) = path.split_first() else { return };
    let mut found = false;
    for element in document.elements() {
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
