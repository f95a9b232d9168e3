//! `$jsonSchema`: rules about a whole document, compiled once, checked on borrowed values.
//!
//! Input is a schema in MongoDB's dialect of JSON Schema draft 4. `parse` turns it into a
//! list of [`Rule`]s. Each rule applies to values of its own type only (`minLength` not to numbers,
//! `required` not to strings). Checking a document allocates only for `uniqueItems`, and for
//! comparisons of documents that ignore the order of their fields.
//!
//! Source: <https://www.mongodb.com/docs/manual/reference/operator/query/jsonSchema/>

mod conditions;
pub(super) mod parse;
mod unordered;

use super::type_set::TypeSet;
use crate::expression::count_code_points;
use document::path::{End, Path};
use document::{Decimal128, Doc, Kind, Value, ValueBuf, compare};
use error::Result;
use hashbrown::HashSet;
use std::cmp::Ordering;
use std::ops::ControlFlow;
use steps::Counted;
use values::decimal;
use values::regex::Regex;

/// A schema, or one nested in another.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    rules: Vec<Rule>,
}

/// A constraint on a value. Rules about a type hold for values of all others.
#[derive(Clone, Debug)]
enum Rule {
    Type(TypeSet),
    /// `encrypt`: binary of subtype 6; with types, one whose header names one of them as the
    /// original.
    Encrypted(Option<TypeSet>),
    // Numbers.
    Bound {
        operand: ValueBuf,
        side: Ordering,
        exclusive: bool,
    },
    MultipleOf(Decimal128),
    // Strings; lengths in code points.
    Pattern(Regex),
    LengthMin(usize),
    LengthMax(usize),
    // Arrays.
    ItemsMin(usize),
    ItemsMax(usize),
    ItemsUnique,
    Items {
        /// Schemas of the first items, one each.
        listed: Vec<Schema>,
        others: Others,
    },
    // Documents.
    PropertiesMin(usize),
    PropertiesMax(usize),
    Required(Vec<Path>),
    Properties(Vec<(Path, Schema)>),
    /// `patternProperties` and `additionalProperties`.
    Allowed {
        named: HashSet<Box<str>>,
        patterns: Vec<(Regex, Schema)>,
        others: Others,
    },
    Dependencies(Vec<(Path, Dependency)>),
    // Anything.
    /// In the order of [`unordered::order`].
    Enumeration(Vec<ValueBuf>),
    AllOf(Vec<Schema>),
    AnyOf(Vec<Schema>),
    OneOf(Vec<Schema>),
    Not(Schema),
}

/// The rule for items or properties that no other keyword covers.
#[derive(Clone, Debug)]
enum Others {
    Allowed,
    Forbidden,
    Match(Schema),
}

/// The requirements of a document with a certain property.
#[derive(Clone, Debug)]
enum Dependency {
    Properties(Vec<Path>),
    Schema(Schema),
}

impl Schema {
    /// Returns whether it has more than one condition on a document.
    pub(crate) fn is_conjunction(&self) -> bool {
        let count = |rule: &Rule| match rule {
            Rule::Required(paths) => paths.len(),
            Rule::Properties(properties) => properties.len(),
            Rule::AllOf(schemas) => schemas.len(),
            _ => 1,
        };
        self.rules.iter().map(count).sum::<usize>() > 1
    }

    pub(crate) fn matches(&self, document: Doc<'_>) -> Result<bool> {
        self.holds_for(Value::Document(document))
    }

    fn holds_for(&self, value: Value<'_>) -> Result<bool> {
        all(&self.rules, |rule| rule.holds_for(value))
    }
}

impl Others {
    fn holds_for(&self, value: Value<'_>) -> Result<bool> {
        match self {
            Others::Allowed => Ok(true),
            Others::Forbidden => Ok(false),
            Others::Match(schema) => schema.holds_for(value),
        }
    }
}

impl Rule {
    fn holds_for(&self, value: Value<'_>) -> Result<bool> {
        steps::step();
        match self {
            Rule::Type(types) => Ok(types.contains(value.kind())),
            Rule::Encrypted(types) => Ok(is_encrypted(value, *types)),
            Rule::Enumeration(values) => {
                Ok(values.binary_search_by(|other| unordered::order(other.as_value(), value)).is_ok())
            }
            Rule::AllOf(schemas) => all(schemas, |schema| schema.holds_for(value)),
            Rule::AnyOf(schemas) => Ok(count_up_to(1, schemas, value)? == 1),
            Rule::OneOf(schemas) => Ok(count_up_to(2, schemas, value)? == 1),
            Rule::Not(schema) => Ok(!schema.holds_for(value)?),
            _ => match value {
                Value::String(text) => self.holds_for_string(text.as_bytes()),
                Value::IllFormed { kind: Kind::String, .. } => {
                    self.holds_for_string(value.string_bytes().unwrap_or_default())
                }
                Value::Array(array) => self.holds_for_array(array),
                Value::Document(document) => self.holds_for_document(document),
                value if value.kind().is_number() => Ok(self.holds_for_number(value)),
                _ => Ok(true),
            },
        }
    }

    fn holds_for_number(&self, value: Value<'_>) -> bool {
        match self {
            Rule::Bound { operand, side, exclusive } => match compare(value, operand.as_value()) {
                Ordering::Equal => !exclusive,
                order => order == *side && !is_nan(value) && !is_nan(operand.as_value()),
            },
            Rule::MultipleOf(divisor) => {
                decimal_of(value).is_some_and(|number| is_zero(decimal::remainder(number, *divisor)))
            }
            _ => true,
        }
    }

    fn holds_for_string(&self, text: &[u8]) -> Result<bool> {
        Ok(match self {
            Rule::Pattern(pattern) => pattern.matches_text(text)?,
            Rule::LengthMin(length) => count_code_points(text) >= *length,
            Rule::LengthMax(length) => count_code_points(text) <= *length,
            _ => true,
        })
    }

    fn holds_for_array(&self, array: Doc<'_>) -> Result<bool> {
        match self {
            Rule::ItemsMin(count) => Ok(array.elements().counted().count() >= *count),
            Rule::ItemsMax(count) => Ok(array.elements().counted().count() <= *count),
            Rule::ItemsUnique => Ok(unordered::all_differ(array)),
            Rule::Items { listed, others } => {
                for (index, item) in array.values().enumerate() {
                    steps::step();
                    let holds = match listed.get(index) {
                        Some(schema) => schema.holds_for(item)?,
                        None => others.holds_for(item)?,
                    };
                    if !holds {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            _ => Ok(true),
        }
    }

    fn holds_for_document(&self, document: Doc<'_>) -> Result<bool> {
        match self {
            Rule::PropertiesMin(count) => Ok(document.elements().counted().count() >= *count),
            Rule::PropertiesMax(count) => Ok(document.elements().counted().count() <= *count),
            Rule::Required(paths) => Ok(paths.iter().all(|path| exists(path, document))),
            Rule::Properties(properties) => {
                all(properties, |(path, schema)| Ok(holds_at(path, schema, document)?.unwrap_or(true)))
            }
            Rule::Allowed { named, patterns, others } => {
                for element in document.elements() {
                    steps::step();
                    if !is_allowed(element.key(), element.value(), named, patterns, others)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Rule::Dependencies(dependencies) => all(dependencies, |(path, dependency)| match dependency {
                _ if !exists(path, document) => Ok(true),
                Dependency::Properties(needed) => Ok(needed.iter().all(|path| exists(path, document))),
                Dependency::Schema(schema) => schema.matches(document),
            }),
            _ => Ok(true),
        }
    }
}

/// Returns whether the condition holds for all; stops at the first for which it does not.
fn all<T>(items: &[T], mut condition: impl FnMut(&T) -> Result<bool>) -> Result<bool> {
    for item in items {
        steps::step();
        if !condition(item)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Counts the schemas that hold, up to `enough`.
fn count_up_to(enough: usize, schemas: &[Schema], value: Value<'_>) -> Result<usize> {
    let mut count = 0;
    for schema in schemas {
        steps::step();
        count += usize::from(schema.holds_for(value)?);
        if count == enough {
            break;
        }
    }
    Ok(count)
}

fn is_allowed(
    name: &str,
    value: Value<'_>,
    named: &HashSet<Box<str>>,
    patterns: &[(Regex, Schema)],
    others: &Others,
) -> Result<bool> {
    let mut is_other = !named.contains(name);
    for (pattern, schema) in patterns {
        steps::step();
        if pattern.matches_text(name.as_bytes())? {
            is_other = false;
            if !schema.holds_for(value)? {
                return Ok(false);
            }
        }
    }
    if is_other { others.holds_for(value) } else { Ok(true) }
}

fn exists(path: &Path, document: Doc<'_>) -> bool {
    steps::step();
    // Account for the fields that are skipped.
    steps::bytes(document.size() / 16);
    if path.component_count() == 1 {
        return document.element(path.as_str()).is_some();
    }
    let visited = path.visit_elements(document, End::Whole, &mut |element, _| match element {
        Some(_) => ControlFlow::Break(()),
        None => ControlFlow::Continue(()),
    });
    visited.is_break()
}

/// Returns whether the schema holds for the property; `None` if there is none. A dotted name is a
/// path as elsewhere in a filter; it is enough if one of the values matches.
fn holds_at(path: &Path, schema: &Schema, document: Doc<'_>) -> Result<Option<bool>> {
    steps::bytes(document.size() / 16);
    if path.component_count() == 1 {
        return document.get(path.as_str()).map(|value| schema.holds_for(value)).transpose();
    }
    let mut found = None;
    let visited = path.visit_elements(document, End::Whole, &mut |element, _| {
        let Some(element) = element else { return ControlFlow::Continue(()) };
        found = Some(false);
        match schema.holds_for(element.value()) {
            Ok(false) => ControlFlow::Continue(()),
            held => ControlFlow::Break(held),
        }
    });
    match visited {
        ControlFlow::Break(held) => held.map(Some),
        ControlFlow::Continue(()) => Ok(found),
    }
}

/// Checks for subtype 6 with a header of 18 bytes, the last of which is the type of the original
/// value.
fn is_encrypted(value: Value<'_>, types: Option<TypeSet>) -> bool {
    let Value::Binary { subtype: 6, bytes } = value else { return false };
    types.is_none_or(|types| {
        bytes.get(17).and_then(|byte| Kind::from_byte(*byte)).is_some_and(|kind| types.contains(kind))
    })
}

fn is_nan(value: Value<'_>) -> bool {
    match value {
        Value::Double(number) => number.is_nan(),
        Value::Decimal128(number) => number.is_nan(),
        _ => false,
    }
}

fn is_zero(number: Decimal128) -> bool {
    number.to_i64_exact() == Some(0)
}

/// Returns the number as a decimal; doubles by their decimal digits.
fn decimal_of(value: Value<'_>) -> Option<Decimal128> {
    Some(match value {
        Value::Int32(number) => decimal::from_i64(number.into()),
        Value::Int64(number) => decimal::from_i64(number),
        Value::Double(number) => decimal::from_f64(number),
        Value::Decimal128(number) => number,
        _ => return None,
    })
}
