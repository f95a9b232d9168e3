//! Documents.

use super::arguments::named;
use super::evaluated::Evaluated;
use super::second_engine::differs;
use super::tree::Arity::{Any, Exactly, Named};
use super::tree::{Expr, Foldable, Operator, ParseExpr};
use document::{Doc, Element, Kind, Value, ValueBuf, names};
use error::{Code, Error, Result};
use std::borrow::Cow;
use steps::Counted;
use values::name_index::NameIndex;
use values::text::display;

pub(super) static OPERATORS: &[Operator] = &[
    Operator::new("$mergeObjects", Any, merge),
    Operator::new("$objectToArray", Exactly(1), to_array),
    Operator::new("$arrayToObject", Exactly(1), from_array),
    Operator::new("$bsonSize", Exactly(1), size).second_engine(differs(&[(
        31393,
        5043001,
        "~ requires a document input",
    )])),
    Operator::new("$getField", Named(parse_get), get).foldable(Foldable::None),
    Operator::new("$setField", Named(parse_set), set).foldable(Foldable::None),
    Operator::new("$unsetField", Named(parse_unset), set).foldable(Foldable::None),
];

/// A document under construction, in which a later field replaces an earlier one of the same name.
#[derive(Default)]
struct MergedFields<'v> {
    fields: Vec<(Cow<'v, str>, Kind, &'v [u8])>,
    indices: NameIndex,
}

impl<'v> MergedFields<'v> {
    fn put(&mut self, name: impl Into<Cow<'v, str>>, kind: Kind, raw: &'v [u8]) {
        steps::step();
        let name = name.into();
        let index = self.indices.index_of(name.as_bytes(), self.fields.iter().map(|(name, ..)| &**name));
        match index.and_then(|index| self.fields.get_mut(index)) {
            Some(field) => *field = (name, kind, raw),
            None => {
                self.indices.push(&name);
                self.fields.push((name, kind, raw));
            }
        }
    }

    fn finish<'a>(self) -> Evaluated<'a> {
        Evaluated::document(|writer| {
            for (name, kind, raw) in self.fields {
                steps::step();
                steps::bytes(raw.len());
                writer.append_raw(kind, name.as_bytes(), raw);
            }
        })
    }
}

/// Merges the documents among `values`, later fields over earlier ones; the `$mergeObjects`
/// accumulator does the same.
fn merge<'a>(_: &'static str, arguments: &mut [Evaluated<'a>]) -> Result<Evaluated<'a>> {
    let mut fields = MergedFields::default();
    match &*arguments {
        // A single array contains the documents.
        [only] => match only.value() {
            Some(Value::Array(array)) => {
                array.values().counted().try_for_each(|value| merge_into(&mut fields, Some(value)))?
            }
            value => merge_into(&mut fields, value)?,
        },
        all => all.iter().try_for_each(|argument| merge_into(&mut fields, argument.value()))?,
    }
    Ok(fields.finish())
}

fn merge_into<'v>(fields: &mut MergedFields<'v>, value: Option<Value<'v>>) -> Result<()> {
    match value {
        None | Some(Value::Null | Value::Undefined) => {}
        Some(Value::Document(document)) => {
            document.elements().for_each(|field| fields.put(field.key(), field.kind, field.raw_value()));
        }
        Some(value) => {
            let (found, kind) = (display(value), value.kind().alias());
            let message = format!("$mergeObjects requires object inputs, but input {found} is of type {kind}");
            return Err(Error::new(Code(40400), message));
        }
    }
    Ok(())
}

/// Returns the document that an operator works on; `None` for null.
fn document<'v>(name: &str, code: i32, argument: &'v Evaluated<'_>) -> Result<Option<Doc<'v>>> {
    match argument.value() {
        None | Some(Value::Null | Value::Undefined) => Ok(None),
        Some(Value::Document(document)) => Ok(Some(document)),
        Some(_) => {
            let found = argument.type_name();
            Err(Error::new(Code(code), format!("{name} requires a document input, found: {found}")))
        }
    }
}

fn to_array<'a>(name: &'static str, arguments: &mut [Evaluated<'a>]) -> Result<Evaluated<'a>> {
    let Some(document) = document(name, 40390, &arguments[0])? else { return Ok(Evaluated::NULL) };
    Ok(Evaluated::array(|writer| {
        for field in document.elements() {
            steps::step();
            steps::bytes(field.raw_value().len());
            let mut pair = writer.document();
            match names::restore_bytes(field.key_bytes()) {
                Cow::Borrowed(_) => pair.append("k", field.key()),
                Cow::Owned(name) => pair.append("k", &ValueBuf::from_string_bytes(&name)),
            }
            pair.append_raw(field.kind, b"v", field.raw_value());
        }
    }))
}

fn size<'a>(name: &'static str, arguments: &mut [Evaluated<'a>]) -> Result<Evaluated<'a>> {
    let size = document(name, 31393, &arguments[0])?.map(names::restored_size);
    Ok(size.map_or(Evaluated::NULL, |size| (size as i32).into()))
}

fn from_array<'a>(_: &'static str, arguments: &mut [Evaluated<'a>]) -> Result<Evaluated<'a>> {
    let array = match arguments[0].value() {
        None | Some(Value::Null | Value::Undefined) => return Ok(Evaluated::NULL),
        Some(Value::Array(array)) => array,
        Some(_) => {
            let found = arguments[0].type_name();
            return Err(Error::new(Code(40386), format!("$arrayToObject requires an array input, found: {found}")));
        }
    };
    let mut fields = MergedFields::default();
    let first_is_array = matches!(array.values().next(), Some(Value::Array(_)));
    for value in array.values() {
        steps::step();
        let ((key, element), null_byte) = match (value, first_is_array) {
            (Value::Array(pair), true) => (array_pair(pair)?, 4940400),
            (Value::Document(pair), false) => (object_pair(pair)?, 4940401),
            (value, _) => return Err(inconsistent(array, value)),
        };
        if key.contains('\0') {
            return Err(Error::new(Code(null_byte), "Key field cannot contain an embedded null byte"));
        }
        fields.put(key, element.kind, element.raw_value());
    }
    Ok(fields.finish())
}

fn inconsistent(array: Doc<'_>, value: Value<'_>) -> Error {
    let found = value.kind().alias();
    let consistent = |code, detected: &str| {
        let message = format!(
            "$arrayToObject requires a consistent input format. Elements mustall be arrays or all be objects. \
             {detected} was detected, now found: {found}"
        );
        Error::new(Code(code), message)
    };
    match array.values().next() {
        Some(Value::Array(_)) => consistent(40396, "Array"),
        Some(Value::Document(_)) => consistent(40391, "Object"),
        _ => Error::new(Code(40398), format!("Unrecognised input type format for $arrayToObject: {found}")),
    }
}

fn array_pair(pair: Doc<'_>) -> Result<(Cow<'_, str>, Element<'_>)> {
    let elements: Vec<Element<'_>> = pair.elements().take(3).collect();
    let [key, value] = elements[..] else {
        let found = pair.elements().counted().count();
        let message = format!("$arrayToObject requires an array of size 2 arrays,found array of size: {found}");
        return Err(Error::new(Code(40397), message));
    };
    match key.value().as_name() {
        Some(key) => Ok((key, value)),
        None => {
            let message = format!(
                "$arrayToObject requires an array of key-value pairs, where the key must be of type string. Found key \
                 type: {}",
                key.kind.alias()
            );
            Err(Error::new(Code(40395), message))
        }
    }
}

fn object_pair(pair: Doc<'_>) -> Result<(Cow<'_, str>, Element<'_>)> {
    let count = pair.elements().counted().count();
    if count != 2 {
        let message =
            format!("$arrayToObject requires an object keys of 'k' and 'v'. Found incorrect number of keys:{count}");
        return Err(Error::new(Code(40392), message));
    }
    let (Some(key), Some(value)) = (pair.element("k"), pair.element("v")) else {
        let found = display(Value::Document(pair));
        let message = format!(
            "$arrayToObject requires an object with keys 'k' and 'v'. Missing either or both keys from: {found}"
        );
        return Err(Error::new(Code(40393), message));
    };
    match key.value().as_name() {
        Some(key) => Ok((key, value)),
        None => {
            let message = format!(
                "$arrayToObject requires an object with keys 'k' and 'v', where the value of 'k' must be of type \
                 string. Found type: {}",
                key.kind.alias()
            );
            Err(Error::new(Code(40394), message))
        }
    }
}

/// Parses the name of a field, which must be a constant. `codes`: for a path, for a variable, for
/// another type.
fn field_name(parser: &mut dyn ParseExpr, name: &str, value: Value<'_>, codes: [i32; 3]) -> Result<Expr> {
    if let Value::String(text) = value
        && let Some(path) = text.strip_prefix('$')
    {
        parser.parse(value)?;
        let path =
            if path.starts_with('$') { path.trim_start_matches('$').to_owned() } else { format!("CURRENT.{path}") };
        let message = format!(
            "'${path}' is a field path reference which is not allowed in this context. Did you mean {{$literal: \
             '${path}'}}?"
        );
        return Err(Error::new(Code(codes[0]), message));
    }
    let is_literal = match value {
        Value::Document(document) => document.first().is_none_or(|first| matches!(first.key(), "$literal" | "$const")),
        Value::Array(_) => false,
        _ => true,
    };
    let parsed = parser.parse(value)?;
    match &parsed {
        Expr::Literal(literal) if is_literal => match literal.as_value() {
            other if other.kind() == Kind::String => {
                Ok(Expr::Literal(Value::String(&other.as_name().unwrap_or_default()).to_owned()))
            }
            other => {
                let found = other.kind().alias();
                let message = format!("{name} requires 'field' to evaluate to type String, but got {found}");
                Err(Error::new(Code(codes[2]), message))
            }
        },
        _ => {
            let message = format!("{name} requires 'field' to evaluate to a constant, but got a non-constant argument");
            Err(Error::new(Code(codes[1]), message))
        }
    }
}

fn parse_get(parser: &mut dyn ParseExpr, name: &str, operand: Value<'_>) -> Result<Vec<Expr>> {
    const CODES: [i32; 3] = [5654600, 5654601, 5654602];
    if let Value::Document(given) = operand
        && given.first().is_none_or(|first| !first.key_bytes().starts_with(b"$"))
    {
        let [field, input] = named(given, ["field", "input"], |unknown| {
            Error::new(Code(3041701), format!("$getField found an unknown argument: {unknown}"))
        })?;
        // Errors within the arguments are reported first.
        field.map(|field| parser.parse(field)).transpose()?;
        let input = input.map(|input| parser.parse(input)).transpose()?;
        let field = field.ok_or_else(|| Error::new(Code(3041702), "$getField requires 'field' to be specified"))?;
        let input = input.ok_or_else(|| Error::new(Code(3041703), "$getField requires 'input' to be specified"))?;
        return Ok(vec![field_name(parser, name, field, CODES)?, input]);
    }
    Ok(vec![field_name(parser, name, operand, CODES)?, parser.parse(Value::String("$$CURRENT"))?])
}

fn get<'a>(_: &'static str, arguments: &mut [Evaluated<'a>]) -> Result<Evaluated<'a>> {
    let [field, input] = &*arguments else { return Ok(Evaluated::Missing) };
    let field = field.value_or_null().as_str().unwrap_or_default();
    Ok(match input.value() {
        Some(Value::Document(_)) => input.part(|input| input.as_document()?.get(field)),
        Some(Value::Null | Value::Undefined) => Evaluated::NULL,
        _ => Evaluated::Missing,
    })
}

fn parse_set(parser: &mut dyn ParseExpr, name: &str, operand: Value<'_>) -> Result<Vec<Expr>> {
    parse_change(parser, name, operand, true)
}

fn parse_unset(parser: &mut dyn ParseExpr, name: &str, operand: Value<'_>) -> Result<Vec<Expr>> {
    parse_change(parser, name, operand, false)
}

fn parse_change(parser: &mut dyn ParseExpr, name: &str, operand: Value<'_>, has_value: bool) -> Result<Vec<Expr>> {
    let Value::Document(given) = operand else {
        return Err(Error::new(Code(4161100), format!("{name} only supports an object as its argument")));
    };
    let unknown = |unknown: &str| Error::new(Code(4161101), format!("{name} found an unknown argument: {unknown}"));
    let [field, input, value] = if has_value {
        named(given, ["field", "input", "value"], unknown)?
    } else {
        let [field, input] = named(given, ["field", "input"], unknown)?;
        [field, input, Some(Value::String("$$REMOVE"))]
    };
    let required = |value: Option<Value<'_>>, code, what: &str| {
        value
            .is_some()
            .then_some(())
            .ok_or_else(|| Error::new(Code(code), format!("{name} requires '{what}' to be specified")))
    };
    required(field, 4161102, "field")?;
    required(value, 4161103, "value")?;
    required(input, 4161109, "input")?;
    let input = parser.parse(input.unwrap_or(Value::Null))?;
    let value = parser.parse(value.unwrap_or(Value::Null))?;
    Ok(vec![field_name(parser, name, field.unwrap_or(Value::Null), [4161108, 4161106, 4161107])?, input, value])
}

fn set<'a>(name: &'static str, arguments: &mut [Evaluated<'a>]) -> Result<Evaluated<'a>> {
    let [field, input, value] = &*arguments else { return Ok(Evaluated::Missing) };
    let document = match input.value() {
        None | Some(Value::Null | Value::Undefined) => return Ok(Evaluated::NULL),
        Some(Value::Document(document)) => document,
        Some(_) => {
            return Err(Error::new(Code(4161105), format!("{name} requires 'input' to evaluate to type Object")));
        }
    };
    let field = field.value_or_null().as_str().unwrap_or_default();
    if field.contains('\0') {
        // MongoDB 6.0 returns a document that no client can read; its message elsewhere for such
        // names is better.
        return Err(Error::new(Code(4940400), "Key field cannot contain an embedded null byte"));
    }
    let replaced = value.value().map(ValueBuf::from);
    let mut fields = MergedFields::default();
    for element in document.elements() {
        steps::step();
        match &replaced {
            None if element.key() == field => {}
            _ => fields.put(element.key(), element.kind, element.raw_value()),
        }
    }
    if let Some(value) = &replaced {
        fields.put(field, value.kind(), value.raw_value());
    }
    Ok(fields.finish())
}
