//! An index's specification in parsed form: its kind, its fields, and which documents it has.

use document::{Collation, Doc, DocBuf, Value};
use error::{Error, Result};
use fulltext::TextIndex;
use query::{Context, Predicate};
use store::{FieldKind, IndexKind, IndexSpec};

/// The number of path components with a bit of their own. If an index has more, the others share
/// all bits.
pub const PARTS_MAX: u32 = 59;

#[derive(Clone, Debug)]
pub struct IndexShape {
    pub spec: IndexSpec,
    pub kind: IndexKind,
    pub fields: Vec<IndexField>,
    /// The filter of a partial index (`partialFilterExpression`).
    pub partial: Option<Predicate>,
    /// The definition of a text index.
    pub text: Option<TextIndex>,
}

impl IndexShape {
    /// Fails if the specification has an invalid filter, collation or option.
    pub fn new(spec: IndexSpec) -> Result<IndexShape> {
        let collation = store::catalog::default_collation(spec.spec.as_doc())?;
        let mut parts = 0;
        let fields = spec.key.as_doc().iter().map(|(path, value)| {
            let kind = FieldKind::of(path, value);
            let ascending = kind != FieldKind::Descending;
            let first_part = parts;
            parts += count_parts(path);
            IndexField { collation: collation.clone(), path: path.to_owned(), kind, ascending, first_part }
        });
        let partial = match spec.spec.as_doc().get("partialFilterExpression") {
            Some(Value::Document(filter)) => {
                Some(Predicate::parse(filter, &Context { collation: collation.clone(), ..Context::at(0) })?)
            }
            Some(_) => return Err(Error::type_mismatch("partialFilterExpression must be an object")),
            None => None,
        };
        Ok(IndexShape {
            kind: IndexKind::of(&spec)?,
            fields: fields.collect(),
            partial,
            text: TextIndex::from_spec(spec.spec.as_doc()),
            spec,
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexField {
    pub path: String,
    pub kind: FieldKind,
    pub ascending: bool,
    /// The index's collation, by which strings in its keys are encoded.
    pub collation: Collation,
    /// The number of its path's first component among all components of the index's paths.
    pub first_part: u32,
}

impl IndexField {
    pub fn part_count(&self) -> u32 {
        count_parts(&self.path)
    }

    /// Returns the bits of all components of the path.
    pub fn all_parts(&self) -> u64 {
        self.parts_between(0, self.part_count())
    }

    pub fn parts_between(&self, from: u32, to: u32) -> u64 {
        (from..to).fold(0, |parts, at| parts | self.part(at))
    }

    /// Returns the bit of the component in front of the rest of a path.
    pub fn part_before(&self, rest: &str) -> u64 {
        self.part((self.part_count() - count_parts(rest)).saturating_sub(1))
    }

    fn part(&self, at: u32) -> u64 {
        match self.first_part + at {
            number if number < PARTS_MAX => 1 << number,
            _ => u64::MAX >> (u64::BITS - PARTS_MAX),
        }
    }
}

fn count_parts(path: &str) -> u32 {
    if path.is_empty() { 0 } else { path.matches('.').count() as u32 + 1 }
}

/// Reads an index's properties from its whole specification.
pub fn index_spec(spec: DocBuf) -> IndexSpec {
    let document = spec.as_doc();
    let flag = |option: &str| document.get(option).is_some_and(Value::is_truthy);
    IndexSpec {
        name: document.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
        key: document.get("key").and_then(Value::as_document).unwrap_or(Doc::EMPTY).to_owned(),
        unique: flag("unique"),
        sparse: flag("sparse"),
        spec,
    }
}
