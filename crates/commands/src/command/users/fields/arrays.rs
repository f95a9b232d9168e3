//! Arrays whose elements must have one type.

use crate::arguments;
use document::{Doc, Element};
use error::{Error, Result};

/// Reads an array of texts.
pub fn texts<'a>(within: &str, field: Element<'a>) -> Result<Vec<&'a str>> {
    let array = arguments::array(within, field)?;
    let text = |element: Element<'a>| {
        let wrong = || wrong_element(within, field, element, "string");
        element.value().as_str().ok_or_else(wrong)
    };
    array.elements().map(text).collect()
}

/// Reads an array of documents.
pub fn documents<'a>(within: &str, field: Element<'a>) -> Result<Doc<'a>> {
    let array = arguments::array(within, field)?;
    let wrong = array.elements().find(|element| element.value().as_document().is_none());
    wrong.map_or(Ok(array), |element| Err(wrong_element(within, field, element, "object")))
}

/// Returns the error for an element of another type.
pub fn wrong_element(within: &str, field: Element<'_>, element: Element<'_>, expected: &str) -> Error {
    arguments::wrong_type(&format!("{within}.{}", field.key()), element, expected)
}
