//! The tree of changes from which a difference is written.

use document::{Doc, DocBuf, DocWriter, Element, Kind};

/// The size of an empty document, and of an empty difference of arrays: with `a: true`.
const EMPTY_FIELDS: usize = 5;
const EMPTY_ELEMENTS: usize = 9;

/// The size of a section: its type, its name with a zero, an empty document.
const SECTION: usize = 8;

/// Changes of the fields of a document.
#[derive(Debug)]
pub struct FieldChanges<'d> {
    removed: Vec<&'d [u8]>,
    updated: Vec<Element<'d>>,
    inserted: Vec<Element<'d>>,
    nested: Vec<(&'d [u8], NestedChanges<'d>)>,
    size: usize,
}

/// Changes of the elements of an array, by rising index.
#[derive(Debug)]
pub struct ElementChanges<'d> {
    changes: Vec<(usize, ElementChange<'d>)>,
    new_length: Option<usize>,
    size: usize,
}

#[derive(Debug)]
pub enum ElementChange<'d> {
    Updated(Element<'d>),
    Nested(NestedChanges<'d>),
}

#[derive(Debug)]
pub enum NestedChanges<'d> {
    Fields(FieldChanges<'d>),
    Elements(ElementChanges<'d>),
}

impl<'d> FieldChanges<'d> {
    pub fn new() -> Self {
        let (removed, updated, inserted, nested) = Default::default();
        FieldChanges { removed, updated, inserted, nested, size: EMPTY_FIELDS }
    }

    pub fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.updated.is_empty() && self.inserted.is_empty() && self.nested.is_empty()
    }

    /// Returns the size of the difference in bytes. MongoDB decides by it whether a difference is
    /// worthwhile.
    pub fn size(&self) -> usize {
        self.size
    }

    pub fn remove(&mut self, name: &'d [u8]) {
        self.size += section(self.removed.is_empty()) + header(name.len()) + 1;
        self.removed.push(name);
    }

    pub fn update(&mut self, element: Element<'d>) {
        self.size += section(self.updated.is_empty()) + size_of(element);
        self.updated.push(element);
    }

    pub fn insert(&mut self, element: Element<'d>) {
        self.size += section(self.inserted.is_empty()) + size_of(element);
        self.inserted.push(element);
    }

    pub fn nest(&mut self, name: &'d [u8], changes: NestedChanges<'d>) {
        self.size += header(1 + name.len()) + changes.size();
        self.nested.push((name, changes));
    }

    pub fn to_document(&self) -> DocBuf {
        DocBuf::build(|writer| self.write(writer))
    }

    fn write(&self, writer: &mut DocWriter<'_>) {
        if !self.removed.is_empty() {
            let mut removed = writer.document("d");
            self.removed.iter().for_each(|name| removed.append_raw(Kind::Boolean, name, &[0]));
        }
        for (section, elements) in [("u", &self.updated), ("i", &self.inserted)] {
            if !elements.is_empty() {
                let mut section = writer.document(section);
                elements.iter().for_each(|element| section.append_element(*element));
            }
        }
        for (name, changes) in &self.nested {
            let name = [b"s", *name].concat();
            changes.write(&name, writer);
        }
    }
}

impl<'d> ElementChanges<'d> {
    pub fn new() -> Self {
        ElementChanges { changes: Vec::new(), new_length: None, size: EMPTY_ELEMENTS }
    }

    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.new_length.is_none()
    }

    pub fn size(&self) -> usize {
        self.size
    }

    pub fn update(&mut self, index: usize, element: Element<'d>) {
        self.size += header(1 + digits(index)) + element.raw_value().len();
        self.changes.push((index, ElementChange::Updated(element)));
    }

    pub fn nest(&mut self, index: usize, changes: NestedChanges<'d>) {
        self.size += header(1 + digits(index)) + changes.size();
        self.changes.push((index, ElementChange::Nested(changes)));
    }

    pub fn truncate(&mut self, length: usize) {
        self.size += header(1) + 4;
        self.new_length = Some(length);
    }

    fn write(&self, writer: &mut DocWriter<'_>) {
        writer.append("a", true);
        if let Some(length) = self.new_length {
            writer.append("l", length as i32);
        }
        for (index, change) in &self.changes {
            match change {
                ElementChange::Updated(element) => {
                    writer.append_raw(element.kind, format!("u{index}").as_bytes(), element.raw_value());
                }
                ElementChange::Nested(changes) => changes.write(format!("s{index}").as_bytes(), writer),
            }
        }
    }
}

impl NestedChanges<'_> {
    fn size(&self) -> usize {
        match self {
            NestedChanges::Fields(changes) => changes.size(),
            NestedChanges::Elements(changes) => changes.size(),
        }
    }

    fn write(&self, name: &[u8], writer: &mut DocWriter<'_>) {
        let mut bytes = Vec::new();
        let mut nested = DocWriter::begin(&mut bytes);
        match self {
            NestedChanges::Fields(changes) => changes.write(&mut nested),
            NestedChanges::Elements(changes) => changes.write(&mut nested),
        }
        drop(nested);
        writer.append_raw(Kind::Document, name, &bytes);
    }
}

fn section(is_first: bool) -> usize {
    if is_first { SECTION } else { 0 }
}

/// Returns the size of an element beside its value.
fn header(name: usize) -> usize {
    name + 2
}

fn size_of(element: Element<'_>) -> usize {
    header(element.key_bytes().len()) + element.raw_value().len()
}

fn digits(index: usize) -> usize {
    index.checked_ilog10().map_or(1, |power| power as usize + 1)
}

/// Returns whether two elements have the same type and bytes, whatever their names.
pub fn same_value(a: Element<'_>, b: Element<'_>) -> bool {
    a.kind == b.kind && a.raw_value() == b.raw_value()
}

/// Returns whether several fields of the document have the same name, so that a name is ambiguous.
pub fn has_equal_names(document: Doc<'_>) -> bool {
    let mut names: Vec<&[u8]> = document.elements().map(|element| element.key_bytes()).collect();
    names.sort_unstable();
    names.windows(2).any(|pair| pair[0] == pair[1])
}
