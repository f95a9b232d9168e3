//! Dotted paths, taken apart once, and the walk to the values they reach.
//!
//! A path reaches many values: arrays on the way are looked into, element by element, and by position where a
//! component is a number. What the walk does at an array is MongoDB's rule, found by asking a 6.0 server:
//!
//! - An array on the way: each document in it is searched for the rest of the path. If the component is the position of
//!   an element, the search also goes on inside that element, whatever it is. Arrays directly inside of arrays are
//!   entered by position only.
//! - An array at the end of the path: each element, then the array itself.
//! - A document that lacks the component: one missing value.

use document::{Doc, Element, Kind};
use error::Result;
use smallvec::SmallVec;
use std::fmt;
use std::ops::Deref;

/// A dotted path and its components.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Path {
    text: Box<str>,
    components: SmallVec<[Component; 2]>,
}

/// Where a component stands in the path's text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Component {
    start: u32,
    end: u32,
    /// The array position it spells, if it spells one the way arrays do (`"0"`, not `"00"`).
    position: Option<u32>,
}

impl Path {
    pub fn new(text: &str) -> Path {
        let mut components = SmallVec::new();
        let mut start = 0;
        for part in text.split('.') {
            let end = start + part.len();
            components.push(Component { start: start as u32, end: end as u32, position: position(part) });
            start = end + 1;
        }
        Path { text: text.into(), components }
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The path's components, in order; never empty.
    pub fn components(&self) -> impl ExactSizeIterator<Item = &str> {
        self.components.iter().map(|component| &self.text[component.start as usize..component.end as usize])
    }

    /// Calls `visit` with the values the path reaches, each with the position in the outermost array that it was found
    /// in, until one is accepted. A missing value is `None`. `leaf_elements`: whether an array at the path's end
    /// stands for its elements as well as for itself.
    pub(crate) fn any<'d, F>(&self, document: Doc<'d>, leaf_elements: bool, visit: &mut F) -> Result<bool>
    where
        F: FnMut(Option<Element<'d>>, Option<usize>) -> Result<bool>,
    {
        Walk { text: self.text.as_bytes(), leaf_elements, visit }.document(document, &self.components, None)
    }
}

/// The position a component spells, if it spells one the way arrays do.
pub(crate) fn position(component: &str) -> Option<u32> {
    let digits = component.as_bytes();
    let canonical = digits == b"0" || (digits.first().is_some_and(|first| (b'1'..=b'9').contains(first)));
    if canonical { component.parse().ok() } else { None }
}

struct Walk<'p, F> {
    text: &'p [u8],
    leaf_elements: bool,
    visit: &'p mut F,
}

impl<'d, F> Walk<'_, F>
where
    F: FnMut(Option<Element<'d>>, Option<usize>) -> Result<bool>,
{
    fn document(&mut self, document: Doc<'d>, path: &[Component], index: Option<usize>) -> Result<bool> {
        let Some((component, rest)) = path.split_first() else { return Ok(false) };
        let name = &self.text[component.start as usize..component.end as usize];
        let Some(element) = document.elements().find(|element| element.key_bytes() == name) else {
            return (self.visit)(None, index);
        };
        match (element.kind, rest.is_empty()) {
            (Kind::Array, true) => self.leaf_array(element, index),
            (_, true) => (self.visit)(Some(element), index),
            (Kind::Document, false) => self.document(nested(element), rest, index),
            (Kind::Array, false) => self.array(nested(element), rest, index),
            (_, false) => (self.visit)(None, index),
        }
    }

    fn leaf_array(&mut self, array: Element<'d>, index: Option<usize>) -> Result<bool> {
        if self.leaf_elements {
            for (position, element) in nested(array).elements().enumerate() {
                if (self.visit)(Some(element), index.or(Some(position)))? {
                    return Ok(true);
                }
            }
        }
        (self.visit)(Some(array), index)
    }

    fn array(&mut self, array: Doc<'d>, path: &[Component], index: Option<usize>) -> Result<bool> {
        let Some((component, rest)) = path.split_first() else { return Ok(false) };
        for (position, element) in array.elements().enumerate() {
            let index = index.or(Some(position));
            if element.kind == Kind::Document && self.document(nested(element), path, index)? {
                return Ok(true);
            }
            if component.position != Some(position as u32) {
                continue;
            }
            let found = match (element.kind, rest.is_empty()) {
                (_, true) => (self.visit)(Some(element), index)?,
                (Kind::Document, false) => self.document(nested(element), rest, index)?,
                (Kind::Array, false) => self.array(nested(element), rest, index)?,
                _ => false,
            };
            if found {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The document or array an element holds.
pub(crate) fn nested(element: Element<'_>) -> Doc<'_> {
    Doc::from_bytes(element.raw_value()).unwrap_or(Doc::EMPTY)
}

impl Deref for Path {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.text, f)
    }
}

impl PartialEq<str> for Path {
    fn eq(&self, other: &str) -> bool {
        &*self.text == other
    }
}
