//! Walking dotted paths through documents, with MongoDB's array semantics and without allocating.
//!
//! A [`Path`] is parsed once per query and walked once per document. There are three walks:
//!
//! - [`Path::get`] goes through documents only, as the path is written.
//! - [`Path::visit`] is the walk of predicates. It calls back with each value that the path reaches
//!   and with each place where it ends early:
//!   - An array on the way is entered: the path goes on in each element that is a document. A
//!     component that is a number also picks the element at that position, whatever it is. Elements
//!     that are neither are skipped silently: `{a: [1, 2]}` has nothing at `a.b`, not even a
//!     missing value.
//!   - An array directly within an array is entered by position only.
//!   - A document without the next component, or a scalar where one is expected, is reported as
//!     missing: that is what `{"a.b": null}` and `{"a.b": {$exists: false}}` look for.
//!   - An array at the end of the path is reported as [`End`] says: [`End::Expanded`] for tests on
//!     values (`$eq`, `$lt`, `$in`, `$regex` …) gives each element and then the array itself,
//!     [`End::Whole`] for tests on arrays (`$size`, `$all` on `$elemMatch`, `$type: "array"`) gives
//!     the array alone. An element picked by position at the end is given as it is, even if it is
//!     an array: `{a: [[1]]}` does not match `{"a.0": 1}`.
//!   - Behind an array an empty last component has no effect: `a.` ends at it as `a` does.
//! - [`Path::visit_keys`] is the walk of sort keys, index keys and `distinct`. It differs in that
//!   an array at the end is always expanded (an empty one is reported as such), that elements which
//!   lead nowhere count as missing, and that a number which is a position in the array is only
//!   that.
//!
//! All this was checked against a 6.0 server. One difference: the server refuses (error 16746) to
//! sort or index by a numeric component where it could mean a position and a field name at once;
//! here it means the position.

use crate::raw::{Doc, Element};
use crate::value::{Kind, Value};
use smallvec::SmallVec;
use std::fmt;
use std::marker::PhantomData;
use std::ops::ControlFlow;

/// A parsed dotted path. `a.0.b` has the components `a`, `0` and `b`; empty components are field
/// names like others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    text: Box<str>,
    components: SmallVec<[Component; 4]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Component {
    start: u32,
    end: u32,
    /// The position in an array that the component may mean.
    index: Option<u32>,
}

/// How an array at the end of a path is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// As one value.
    Whole,
    /// Each element, then the array.
    Expanded,
}

/// A value that [`Path::visit`] has reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reached<'d> {
    /// The value at the end of the path; `None` if a document on the way does not have the next
    /// component.
    pub value: Option<Value<'d>>,
    /// The position in the outermost array whose elements were searched, as the positional operator
    /// `$` needs it. Positions in the path itself do not count.
    pub array_index: Option<usize>,
}

/// A key that [`Path::visit_keys`] has reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Key<'d> {
    Value(Value<'d>),
    /// The path ends early. Sorts and is indexed as null.
    Missing,
    /// The path ends at an array without elements. Sorts and is indexed as undefined, below null.
    EmptyArray,
}

impl<'d> Key<'d> {
    /// Returns the value that represents it in sort keys and indexes.
    pub fn sort_value(self) -> Value<'d> {
        match self {
            Key::Value(value) => value,
            Key::Missing => Value::Null,
            Key::EmptyArray => Value::Undefined,
        }
    }
}

/// Longer paths lead nowhere: no document is nested that deep.
const COMPONENTS_WALKED_MAX: usize = 255;

impl Path {
    pub fn new(text: &str) -> Path {
        let mut start = 0;
        let components = text.split('.').map(|name| {
            let component = Component { start, end: start + name.len() as u32, index: position(name) };
            start = component.end + 1;
            component
        });
        Path { components: components.collect(), text: text.into() }
    }

    /// Returns the path as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the number of components, at least 1.
    pub fn component_count(&self) -> usize {
        self.components.len()
    }

    /// Returns the first component: the field of the document that the path leads into.
    pub fn first(&self) -> &str {
        self.name(0)
    }

    pub fn components(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.components.iter().map(|component| self.slice(*component))
    }

    /// Returns whether a component may mean a position in an array.
    pub fn has_position(&self) -> bool {
        self.components.iter().any(|component| component.index.is_some())
    }

    /// Returns whether this path leads to `other` or to something within it, or the other way round
    /// (`a` and `a.b`, not `ab`).
    pub fn conflicts_with(&self, other: &Path) -> bool {
        self.components().zip(other.components()).all(|(a, b)| a == b)
    }

    /// Returns the value that the path leads to through documents alone.
    pub fn get<'d>(&self, mut document: Doc<'d>) -> Option<Value<'d>> {
        let last = self.components.len() - 1;
        for at in 0..last {
            document = document.get(self.name(at))?.as_document()?;
        }
        document.get(self.name(last))
    }

    /// Calls `visit` with everything the path reaches, until it breaks. See the module's
    /// description.
    #[inline]
    pub fn visit<'d, F>(&self, document: Doc<'d>, end: End, visit: &mut F) -> ControlFlow<()>
    where
        F: FnMut(Reached<'d>) -> ControlFlow<()>,
    {
        self.visit_elements(document, end, &mut |element: Option<Element<'d>>, array_index| {
            visit(Reached { value: element.map(Element::value), array_index })
        })
    }

    /// As [`Path::visit`], with undecoded elements, for callers that check the bytes first. `visit`
    /// gets the element and the array index of [`Reached`].
    #[inline]
    pub fn visit_elements<'d, B, F>(&self, document: Doc<'d>, end: End, visit: &mut F) -> ControlFlow<B>
    where
        F: FnMut(Option<Element<'d>>, Option<usize>) -> ControlFlow<B>,
    {
        PredicateWalk { path: self, end, visit, stop: PhantomData }.document(document, 0, None)
    }

    /// Calls `visit` with each sort or index key that the path gives, at least one, until it
    /// breaks. See the module's description.
    #[inline]
    pub fn visit_keys<'d, F>(&self, document: Doc<'d>, visit: &mut F) -> ControlFlow<()>
    where
        F: FnMut(Key<'d>) -> ControlFlow<()>,
    {
        KeyWalk { path: self, visit }.document(document, 0)
    }

    fn slice(&self, component: Component) -> &str {
        self.text.get(component.start as usize..component.end as usize).unwrap_or_default()
    }

    fn name(&self, at: usize) -> &str {
        self.components.get(at).map(|component| self.slice(*component)).unwrap_or_default()
    }

    fn index(&self, at: usize) -> Option<usize> {
        self.components.get(at)?.index.map(|index| index as usize)
    }

    fn is_end(&self, at: usize) -> bool {
        at >= self.components.len()
    }

    /// Returns whether the path ends in a dot, and component `at` is the empty one behind it.
    #[inline]
    fn is_empty_from(&self, at: usize) -> bool {
        at + 1 == self.components.len() && self.name(at).is_empty()
    }
}

impl PartialEq<str> for Path {
    fn eq(&self, other: &str) -> bool {
        &*self.text == other
    }
}

impl PartialEq<&str> for Path {
    fn eq(&self, other: &&str) -> bool {
        &*self.text == *other
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Returns the array position that a name means: digits without leading zeros.
pub fn position(name: &str) -> Option<u32> {
    let canonical = name == "0" || matches!(name.as_bytes().first(), Some(b'1'..=b'9'));
    if canonical { name.parse().ok() } else { None }
}

struct PredicateWalk<'w, F, B> {
    path: &'w Path,
    end: End,
    visit: &'w mut F,
    /// The value that a visitor breaks with.
    stop: PhantomData<B>,
}

impl<'d, B, F: FnMut(Option<Element<'d>>, Option<usize>) -> ControlFlow<B>> PredicateWalk<'_, F, B> {
    /// Continues in `document` with component `at`.
    #[inline]
    fn document(&mut self, mut document: Doc<'d>, mut at: usize, outermost: Option<usize>) -> ControlFlow<B> {
        loop {
            let Some(element) = document.element(self.path.name(at)) else {
                return self.report(None, outermost);
            };
            at += 1;
            if self.path.is_end(at) {
                return self.end(element, outermost);
            }
            match element.value() {
                Value::Array(_) if self.path.is_empty_from(at) => return self.end(element, outermost),
                Value::Document(inner) => document = inner,
                Value::Array(array) => return self.array(array, at, outermost),
                _ => return self.report(None, outermost),
            }
        }
    }

    /// Continues in the elements of `array` with component `at`.
    fn array(&mut self, array: Doc<'d>, at: usize, outermost: Option<usize>) -> ControlFlow<B> {
        if at > COMPONENTS_WALKED_MAX {
            return ControlFlow::Continue(());
        }
        let picked = self.path.index(at);
        for (index, element) in array.elements().enumerate() {
            steps::step();
            if element.kind == Kind::Document
                && let Value::Document(inner) = element.value()
            {
                self.document(inner, at, outermost.or(Some(index)))?;
            }
            // A position in the path itself does not count for `$`.
            if picked == Some(index) {
                self.picked(element, at + 1, outermost)?;
            }
        }
        ControlFlow::Continue(())
    }

    /// Continues in an array's element that a number has selected.
    fn picked(&mut self, element: Element<'d>, at: usize, outermost: Option<usize>) -> ControlFlow<B> {
        match element.value() {
            _ if self.path.is_end(at) => self.report(Some(element), outermost),
            Value::Document(inner) => self.document(inner, at, outermost),
            Value::Array(_) if self.path.is_empty_from(at) => self.end(element, outermost),
            Value::Array(inner) => self.array(inner, at, outermost),
            _ => ControlFlow::Continue(()),
        }
    }

    #[inline]
    fn end(&mut self, element: Element<'d>, outermost: Option<usize>) -> ControlFlow<B> {
        if element.kind == Kind::Array
            && self.end == End::Expanded
            && let Value::Array(array) = element.value()
        {
            for (index, element) in array.elements().enumerate() {
                steps::step();
                self.report(Some(element), outermost.or(Some(index)))?;
            }
        }
        self.report(Some(element), outermost)
    }

    #[inline]
    fn report(&mut self, element: Option<Element<'d>>, array_index: Option<usize>) -> ControlFlow<B> {
        (self.visit)(element, array_index)
    }
}

struct KeyWalk<'w, F> {
    path: &'w Path,
    visit: &'w mut F,
}

impl<'d, F: FnMut(Key<'d>) -> ControlFlow<()>> KeyWalk<'_, F> {
    /// Continues in `document` with component `at`.
    #[inline]
    fn document(&mut self, document: Doc<'d>, at: usize) -> ControlFlow<()> {
        match document.element(self.path.name(at)) {
            Some(element) => self.element(element, at + 1),
            None => (self.visit)(Key::Missing),
        }
    }

    fn element(&mut self, element: Element<'d>, at: usize) -> ControlFlow<()> {
        match element.value() {
            Value::Array(array) if self.path.is_end(at) => self.end(array),
            value if self.path.is_end(at) => (self.visit)(Key::Value(value)),
            _ if at > COMPONENTS_WALKED_MAX => (self.visit)(Key::Missing),
            Value::Document(inner) => self.document(inner, at),
            Value::Array(array) => self.array(array, at),
            _ => (self.visit)(Key::Missing),
        }
    }

    fn array(&mut self, array: Doc<'d>, at: usize) -> ControlFlow<()> {
        if let Some(element) = self.path.index(at).and_then(|index| array.elements().nth(index)) {
            return match element.value() {
                // An array selected at the end is not expanded, except that an empty one is still
                // reported as such.
                Value::Array(picked) if self.path.is_end(at + 1) && !picked.is_empty() => {
                    (self.visit)(Key::Value(Value::Array(picked)))
                }
                _ => self.element(element, at + 1),
            };
        }
        if array.is_empty() {
            return (self.visit)(Key::Missing);
        }
        for value in array.values() {
            steps::step();
            match value {
                Value::Document(inner) => self.document(inner, at)?,
                _ => (self.visit)(Key::Missing)?,
            }
        }
        ControlFlow::Continue(())
    }

    fn end(&mut self, array: Doc<'d>) -> ControlFlow<()> {
        if array.is_empty() {
            return (self.visit)(Key::EmptyArray);
        }
        array.values().try_for_each(|value| {
            steps::step();
            (self.visit)(Key::Value(value))
        })
    }
}

#[cfg(test)]
mod tests;
