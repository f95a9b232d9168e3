//! The arguments of `count`.

use crate::arguments::{self, non_negative, options, unknown_field};
use document::{Doc, DocBuf, Element, Value};
use error::{Error, Result};

const WITHIN: &str = "count";

#[derive(Default)]
pub struct Arguments<'a> {
    pub query: Option<Doc<'a>>,
    pub skip: u64,
    /// The limit; zero means none, except on a view, where it is refused.
    pub limit: Option<u64>,
    pub hint: Option<Value<'a>>,
    pub collation: Option<Doc<'a>>,
}

impl<'a> Arguments<'a> {
    pub fn read(fields: impl Iterator<Item = Element<'a>>) -> Result<Self> {
        let mut arguments = Arguments::default();
        for field in fields {
            match field.key() {
                _ if arguments::is_left_out(field, &["query", "skip", "collation"]) => {}
                "query" => arguments.query = Some(arguments::document(WITHIN, field)?),
                "skip" => arguments.skip = non_negative(WITHIN, field)?,
                "limit" => arguments.limit = limit(field)?,
                "hint" => arguments.hint = options::hint(field)?,
                "collation" => arguments.collation = options::collation(WITHIN, field)?,
                // The projection does not affect the count, and may have any type.
                "fields" => {}
                other => return Err(unknown_field(WITHIN, other)),
            }
        }
        Ok(arguments)
    }

    /// Returns the number of matches after which counting can stop.
    pub fn counted_max(&self) -> Option<u64> {
        self.limit.filter(|limit| *limit > 0).map(|limit| limit.saturating_add(self.skip))
    }
}

/// Reads the limit. A negative one means its absolute value; it once asked for a single batch.
fn limit(field: Element<'_>) -> Result<Option<u64>> {
    if !field.kind.is_number() {
        return Err(Error::bad_value("limit value is not a valid number"));
    }
    let found = || {
        let found = options::display(DocBuf::build(|writer| writer.append_element(field)).as_doc());
        found.trim_matches(['{', '}', ' ']).to_owned()
    };
    let number = match field.value() {
        Value::Double(double)
            if double.is_nan() || double.is_finite() && double.fract() != 0.0 && double.abs() < 9e18 =>
        {
            return Err(Error::failed_to_parse(format!("Expected an integer: {}", found())));
        }
        value => values::integer::as_i64_exact(value),
    };
    let number =
        number.ok_or_else(|| Error::failed_to_parse(format!("Cannot represent as a 64-bit integer: {}", found())))?;
    if number == i64::MIN {
        return Err(Error::bad_value("limit value for count cannot be min long"));
    }
    Ok(Some(number.unsigned_abs()))
}
