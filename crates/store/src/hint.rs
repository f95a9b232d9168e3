//! The `hint` of a query: natural order, or the index to use.

use crate::index_rules::same_key;
use document::{Doc, Value};
use error::Error;

/// The field of a hint, or of a sort, that stands for natural order.
pub const NATURAL: &str = "$natural";

/// A hint: an index's name or its key pattern, or natural order.
#[derive(Clone, Copy, Debug)]
pub struct Hint<'q>(Value<'q>);

impl<'q> Hint<'q> {
    /// Returns `None` for an empty pattern, which MongoDB ignores.
    pub fn of(hint: Option<Value<'q>>) -> Option<Hint<'q>> {
        hint.filter(|hint| !hint.as_document().is_some_and(Doc::is_empty)).map(Hint)
    }

    /// Returns the direction of natural order, if the hint names that; true is forward. Everything
    /// but a number of -1 or less is forward.
    pub fn natural(self) -> Option<bool> {
        let direction = self.0.as_document()?.get(NATURAL)?;
        Some(direction.to_i64().is_none_or(|direction| direction >= 0))
    }

    /// Returns whether the hint names an index.
    pub fn names(self, index: &str, key: Doc<'_>) -> bool {
        match self.0 {
            Value::Document(pattern) => same_key(pattern, key),
            hint => hint.as_name().is_some_and(|name| name == index),
        }
    }
}

/// Returns error 2: the hinted index does not exist.
pub fn missing_index() -> Error {
    Error::bad_value(
        "error processing query: planner returned error :: caused by :: \
         hint provided does not correspond to an existing index",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::{DocBuf, doc};

    #[track_caller]
    fn check(hint: DocBuf, natural: Option<bool>) {
        let hint = Hint::of(Some(Value::Document(hint.as_doc()))).expect("a hint");
        assert_eq!(hint.natural(), natural);
    }

    #[test]
    fn natural_order_has_a_direction() {
        check(doc! { "$natural": 1 }, Some(true));
        check(doc! { "$natural": -1 }, Some(false));
        check(doc! { "$natural": -2_i64 }, Some(false));
        check(doc! { "$natural": -0.5 }, Some(true));
        check(doc! { "$natural": "x" }, Some(true));
        check(doc! { "a": -1 }, None);
        assert!(Hint::of(Some(Value::Document(Doc::EMPTY))).is_none());
    }

    #[test]
    fn an_index_is_named_by_its_name_or_key() {
        let (key, other) = (doc! { "a": 1, "b": -1 }, doc! { "b": -1, "a": 1 });
        let names = |hint: Value<'_>| Hint::of(Some(hint)).is_some_and(|hint| hint.names("i", key.as_doc()));
        assert!(names(Value::String("i")) && names(Value::Document(doc! { "a": 1.0, "b": -1_i64 }.as_doc())));
        assert!(!names(Value::String("j")) && !names(Value::Document(other.as_doc())) && !names(Value::Null));
    }
}
