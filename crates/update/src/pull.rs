//! `$pull` and `$pullAll`: remove elements of an array, by value or by condition.

use super::write::{wrap_in_document, write_header};
use document::{ArrayWriter, Doc, Element, Kind, Value};
use error::{Code, Error, Result};
use query::{Context, Predicate};
use steps::Counted;
use values::value_set::ValueSet;

#[derive(Clone, Debug)]
pub(super) enum Pull {
    /// Elements equal to one of these.
    Values(ValueSet),
    /// Elements that are documents and match.
    Documents(Predicate),
    /// Elements that match as the value of a field with the empty name.
    Wrapped(Predicate),
}

impl Pull {
    /// Parses `$pullAll`'s argument.
    pub fn parse_all(argument: Value<'_>, context: &Context) -> Result<Self> {
        match argument {
            Value::Array(values) => Ok(Pull::Values(ValueSet::of(values.values().counted(), &context.collation))),
            other => Err(Error::bad_value(format!(
                "$pullAll requires an array argument but was given a {}",
                other.kind().alias()
            ))),
        }
    }

    /// Parses `$pull`'s argument.
    pub fn parse(argument: Value<'_>, context: &Context) -> Result<Self> {
        match argument {
            Value::Document(condition) if !is_value_condition(condition) => {
                let predicate = Predicate::parse(condition, context)?;
                if predicate.has_expression() {
                    return Err(Error::new(Code::QUERY_FEATURE_NOT_ALLOWED, "$expr is not allowed in this context"));
                }
                Ok(Pull::Documents(predicate))
            }
            Value::Document(_) | Value::Regex { .. } | Value::IllFormed { kind: Kind::Regex, .. } => {
                let mut wrapped = Vec::new();
                let filter = wrap_in_document("", argument, &mut wrapped);
                Ok(Pull::Wrapped(Predicate::parse(filter, context)?))
            }
            value => Ok(Pull::Values(ValueSet::of([value], &context.collation))),
        }
    }

    pub fn change(&self, element: Element<'_>, out: &mut Vec<u8>) -> Result<bool> {
        let Value::Array(array) = element.value() else {
            return Err(Error::bad_value("Cannot apply $pull to a non-array value"));
        };
        write_header(out, Kind::Array, element.key_bytes());
        let mut writer = ArrayWriter::begin(out);
        let mut changed = false;
        let mut scratch = Vec::new();
        for element in array.elements() {
            steps::step();
            if self.removes(element.value(), &mut scratch)? {
                changed = true;
            } else {
                writer.push_raw(element.kind, element.raw_value());
            }
        }
        Ok(changed)
    }

    fn removes(&self, value: Value<'_>, scratch: &mut Vec<u8>) -> Result<bool> {
        match self {
            Pull::Values(values) => Ok(values.contains(value)),
            Pull::Documents(predicate) => match value {
                Value::Document(document) => predicate.matches(document),
                _ => Ok(false),
            },
            Pull::Wrapped(predicate) => predicate.matches(wrap_in_document("", value, scratch)),
        }
    }
}

/// Returns whether a condition applies to the element itself (`{$gte: 5}`) rather than to its
/// fields.
fn is_value_condition(condition: Doc<'_>) -> bool {
    const LOGICAL: &[&str] = &["$and", "$or", "$nor", "$not", "$expr", "$comment", "$where", "$text", "$jsonSchema"];
    condition.first().is_some_and(|first| first.key().starts_with('$') && !LOGICAL.contains(&first.key()))
}
