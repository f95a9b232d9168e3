//! Which answers a change may matter to, found without asking each.
//!
//! A filter that asks a field to be equal to a value is filed under that value: only documents with it can match. What cannot be filed so
//! is in a list that every change of the collection goes through; the list is kept short.

use ahash::AHashMap;
use document::path::{End, Path};
use document::{Doc, Kind, Value, key};
use query::Predicate;
use query::predicate::{Node, Test};
use smallvec::SmallVec;
use std::ops::ControlFlow;

/// A filter with more values than this is not filed under each.
const VALUES_MAX: usize = 100;

/// The `_id` field goes before all others: it says most.
const ID: &str = "_id";

/// Where an answer is to be found: under paths and the values that documents have to have there. No pairs: in the list.
pub type Under = SmallVec<[(Path, Box<[u8]>); 1]>;

/// The places to file a filter under, of which every matching document has one; `None` where there are none that would do.
pub fn under(predicate: &Predicate) -> Option<Under> {
    let under = places(predicate.root())?;
    (under.len() <= VALUES_MAX).then_some(under)
}

fn places(node: &Node) -> Option<Under> {
    match node {
        Node::Path { path, test } => values(test)?.map(|value| Some((path.clone(), encoded(value)?))).collect(),
        // Each condition holds for all that match, so one of them is enough.
        Node::And(all) => {
            let rank = |under: &Under| (under.iter().any(|(path, _)| *path != *ID), under.len());
            all.iter().filter_map(places).min_by_key(rank)
        }
        Node::Or(branches) => {
            let mut under = Under::new();
            for branch in branches {
                under.extend(places(branch)?);
            }
            Some(under)
        }
        _ => None,
    }
}

/// The values of which one is equal to what the test holds for.
fn values(test: &Test) -> Option<std::vec::IntoIter<Value<'_>>> {
    let values = match test {
        Test::Equal(value) => vec![value.as_value()],
        Test::In(list) if list.regexes().is_empty() => list.values().iter().map(|value| value.as_value()).collect(),
        _ => return None,
    };
    Some(values.into_iter())
}

/// The value as it is filed; `None` for those that are equal to what looks otherwise (null and a missing field, arrays and their elements).
fn encoded(value: Value<'_>) -> Option<Box<[u8]>> {
    match value.kind() {
        Kind::Null | Kind::Undefined | Kind::Array | Kind::Regex => None,
        _ => {
            let mut bytes = Vec::with_capacity(16);
            key::encode(value, &mut bytes);
            Some(bytes.into())
        }
    }
}

/// Whether a document with this `_id` may match, as far as the filter says something of the `_id`.
pub fn may_match_id(predicate: &Predicate, id: Value<'_>) -> bool {
    match under(predicate) {
        Some(under) if under.iter().all(|(path, _)| *path == *ID) => match encoded(id) {
            Some(id) => under.iter().any(|(_, value)| *value == id),
            None => true,
        },
        _ => true,
    }
}

/// The answers made from one collection, by what they are filed under.
#[derive(Default)]
pub struct Filed {
    by_path: AHashMap<Box<str>, ByValue>,
    /// Those that every change is held against.
    list: Vec<u32>,
    /// Those that every change throws out.
    everything: Vec<u32>,
}

struct ByValue {
    path: Path,
    answers: hashbrown::HashMap<Box<[u8]>, SmallVec<[u32; 2]>, ahash::RandomState>,
}

/// Where one answer is filed.
#[derive(Clone, Debug)]
pub enum Place {
    Under(Under),
    List,
    Everything,
}

impl Filed {
    pub fn add(&mut self, answer: u32, place: &Place) {
        match place {
            Place::Under(under) => {
                for (path, value) in under {
                    let new = || ByValue { path: path.clone(), answers: hashbrown::HashMap::default() };
                    let by_value = match self.by_path.get_mut(path.as_str()) {
                        Some(by_value) => by_value,
                        None => self.by_path.entry(path.as_str().into()).or_insert_with(new),
                    };
                    by_value.answers.entry(value.clone()).or_default().push(answer);
                }
            }
            Place::List => self.list.push(answer),
            Place::Everything => self.everything.push(answer),
        }
    }

    pub fn remove(&mut self, answer: u32, place: &Place) {
        match place {
            Place::Under(under) => {
                for (path, value) in under {
                    let Some(by_value) = self.by_path.get_mut(path.as_str()) else { continue };
                    if let Some(answers) = by_value.answers.get_mut(&**value) {
                        take(answers, answer);
                        if answers.is_empty() {
                            by_value.answers.remove(&**value);
                        }
                    }
                    if by_value.answers.is_empty() {
                        self.by_path.remove(path.as_str());
                    }
                }
            }
            Place::List => take_from(&mut self.list, answer),
            Place::Everything => take_from(&mut self.everything, answer),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.by_path.is_empty() && self.list.is_empty() && self.everything.is_empty()
    }

    /// How many are in the list; and the one that has been there longest.
    pub fn listed(&self) -> (usize, Option<u32>) {
        (self.list.len(), self.list.first().copied())
    }

    /// All answers, some perhaps more than once.
    pub fn all(&self, found: &mut Vec<u32>) {
        let under = self.by_path.values().flat_map(|by_value| by_value.answers.values().flatten());
        found.extend(under.chain(&self.list).chain(&self.everything));
    }

    /// Answers that a document may matter to, as it was or as it is; some perhaps more than once.
    pub fn of_documents(&self, documents: [Option<Doc<'_>>; 2], found: &mut Vec<u32>) {
        let mut bytes = Vec::with_capacity(32);
        for by_value in self.by_path.values() {
            for document in documents.into_iter().flatten() {
                let _ = by_value.path.visit(document, End::Expanded, &mut |reached| {
                    if let Some(value) = reached.value {
                        bytes.clear();
                        key::encode(value, &mut bytes);
                        found.extend(by_value.answers.get(bytes.as_slice()).into_iter().flatten());
                    }
                    ControlFlow::<()>::Continue(())
                });
            }
        }
        found.extend(self.list.iter().chain(&self.everything));
    }

    /// Answers that the document with an `_id` may matter to.
    pub fn of_id(&self, id: Value<'_>, found: &mut Vec<u32>) {
        let Some(id) = encoded(id) else { return self.all(found) };
        for by_value in self.by_path.values() {
            if by_value.path == *ID {
                found.extend(by_value.answers.get(&*id).into_iter().flatten());
            } else {
                found.extend(by_value.answers.values().flatten());
            }
        }
        found.extend(self.list.iter().chain(&self.everything));
    }
}

fn take(answers: &mut SmallVec<[u32; 2]>, answer: u32) {
    if let Some(at) = answers.iter().position(|&other| other == answer) {
        answers.swap_remove(at);
    }
}

fn take_from(answers: &mut Vec<u32>, answer: u32) {
    if let Some(at) = answers.iter().position(|&other| other == answer) {
        answers.remove(at);
    }
}
