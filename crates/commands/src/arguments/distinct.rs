//! The arguments of `distinct`.

use crate::arguments::{self, options, unknown_field};
use document::{Doc, Element, Value};
use error::{Code, Error, Result};
use std::borrow::Cow;

const WITHIN: &str = "distinct";

#[derive(Default)]
pub struct Arguments<'a> {
    pub key: Cow<'a, str>,
    pub query: Option<Doc<'a>>,
    pub hint: Option<Value<'a>>,
    pub collation: Option<Doc<'a>>,
}

impl<'a> Arguments<'a> {
    pub fn read(fields: impl Iterator<Item = Element<'a>>) -> Result<Self> {
        let mut arguments = Arguments::default();
        let mut key = None;
        for field in fields {
            match field.key() {
                "key" => {
                    key = Some(
                        field
                            .value()
                            .as_name()
                            .map_or_else(|| arguments::string(WITHIN, field).map(Cow::Borrowed), Ok)?,
                    )
                }
                _ if arguments::is_left_out(field, &["query", "collation"]) => {}
                "query" => arguments.query = Some(arguments::document(WITHIN, field)?),
                "collation" => arguments.collation = options::collation(WITHIN, field)?,
                other => return Err(unknown_field(WITHIN, other)),
            }
        }
        arguments.key = key.ok_or_else(|| arguments::missing_field(WITHIN, "key"))?;
        if arguments.key.contains('\0') {
            return Err(Error::new(Code(31032), "Key field cannot contain an embedded null byte"));
        }
        Ok(arguments)
    }
}
