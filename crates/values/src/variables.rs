//! The variables bound by a command's `let` or by a stage, and their constant values.

use document::{Doc, DocBuf, Kind, Value};
use hashbrown::HashMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use steps::Counted;

/// A document of up to this size is searched faster than an index over it is built.
const SEARCHED_BYTES_MAX: usize = 512;

/// Names and values. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Variables(Arc<Inner>);

#[derive(Clone, Debug, Default)]
struct Inner {
    document: DocBuf,
    /// The position of each name's value in the document, computed when first needed.
    positions: OnceLock<Positions>,
}

type Positions = HashMap<Box<str>, (Kind, Range<usize>)>;

impl Variables {
    pub fn as_doc(&self) -> Doc<'_> {
        self.0.document.as_doc()
    }

    /// Returns the value of a variable.
    pub fn get(&self, name: &str) -> Option<Value<'_>> {
        let document = self.as_doc();
        if document.size() <= SEARCHED_BYTES_MAX {
            return document.get(name);
        }
        let (kind, range) = self.positions().get(name)?;
        Some(Value::from_raw(*kind, document.as_bytes().get(range.clone())?))
    }

    /// Adds a variable; of several with one name the first one counts.
    pub fn append<'v>(&mut self, name: &str, value: impl Into<Value<'v>>) {
        let inner = Arc::make_mut(&mut self.0);
        let value = value.into();
        inner.document.append(name, value);
        if let Some(positions) = inner.positions.get_mut() {
            // The value ends where the document does.
            let end = inner.document.as_bytes().len() - 1;
            let mut raw = Vec::new();
            value.write_raw(&mut raw);
            positions.entry(name.into()).or_insert((value.kind(), end - raw.len()..end));
        }
    }

    fn positions(&self) -> &Positions {
        match self.0.positions.get() {
            Some(positions) => positions,
            None => {
                // Computed outside the lock: it may be suspended while other threads wait.
                let positions = positions_in(self.as_doc());
                self.0.positions.get_or_init(|| positions)
            }
        }
    }
}

impl From<DocBuf> for Variables {
    fn from(document: DocBuf) -> Self {
        Variables(Arc::new(Inner { document, positions: OnceLock::new() }))
    }
}

fn positions_in(document: Doc<'_>) -> Positions {
    let mut positions = Positions::new();
    let mut at = 4;
    for element in document.elements().counted() {
        let start = at + 1 + element.key_bytes().len() + 1;
        at = start + element.raw_value().len();
        positions.entry(element.key().into()).or_insert((element.kind, start..at));
    }
    positions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many_are_found_by_their_names() {
        for count in [1, 20, 200] {
            let mut variables = Variables::from(DocBuf::build(|writer| {
                (0..count).for_each(|number| writer.append(&format!("name{number}"), number));
            }));
            assert_eq!(variables.get("name0"), Some(Value::Int32(0)));
            assert_eq!(variables.get("new"), None);
            variables.append("new", "text");
            variables.append("new", "other");
            variables.append("name0", 5);
            assert_eq!(variables.get("new"), Some(Value::String("text")));
            assert_eq!(variables.get("name0"), Some(Value::Int32(0)));
            assert_eq!(variables.get(&format!("name{}", count - 1)), Some(Value::Int32(count - 1)));
        }
    }
}
