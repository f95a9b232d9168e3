//! The invalidation index of a collection: finds the entries that a change may affect without
//! checking each.
//!
//! A filter that requires a field to have a value, a value in a range, a text with a substring, or
//! any value at all, is indexed under that: only documents with such a value can match. A filter
//! that cannot be indexed, or only together with many that the same change finds, goes to a list of
//! unindexed entries. Every change of the collection is checked against the list, so it is kept
//! short. With filters on many fields, only those on the document's own fields are looked up.

use crate::changed_fields::ChangedFields;
use crate::intervals::Intervals;
use crate::invalidation_keys::{InvalidationKeys, KeyCandidate, Trigram, ValueCondition, first_name, trigrams};
use crate::unindexed_predicates::UnindexedPredicates;
use ahash::AHashMap;
use document::path::{End, Path};
use document::{Doc, Value, key};
use query::Predicate;
use smallvec::SmallVec;
use std::ops::ControlFlow;

/// If a change finds this many false positives already, another choice of keys is tried.
const FALSE_POSITIVES_FEW: usize = 2;

/// A text has many trigrams: a trigram that leads to this many entries gets no more.
const TRIGRAM_FALSE_POSITIVES_MAX: usize = 16;

/// The trigrams of longer texts are collected first, and those with entries are looked up among
/// them.
const TEXT_BYTES_FEW: usize = 1024;

/// With filters on more fields than this, only those that the document has are looked up.
const FIELDS_FEW: usize = 8;

/// The entries that depend on one collection, by their keys.
#[derive(Default)]
pub struct InvalidationIndex {
    /// By the first name in a path, and the path.
    by_field: ByName<ByName<PathIndex>>,
    /// First names of paths with entries that a document without the field may affect, and the
    /// number of those entries.
    by_missing: ByName<usize>,
    unindexed: UnindexedPredicates,
    /// Entries that every change invalidates.
    any_change: Vec<u32>,
}

/// The standard library's maps have no entry by a borrowed name.
type ByName<V> = hashbrown::HashMap<String, V, ahash::RandomState>;

struct PathIndex {
    path: Path,
    by_value: hashbrown::HashMap<Box<[u8]>, SmallVec<[u32; 2]>, ahash::RandomState>,
    by_range: Intervals<EntryLabel>,
    by_trigram: AHashMap<Trigram, SmallVec<[u32; 2]>>,
    /// Entries that any value affects.
    by_presence: AHashMap<u32, bool>,
}

/// An entry, and whether it is never a false positive.
type EntryLabel = (u32, bool);

/// The placement of an entry in the index.
#[derive(Clone, Debug)]
pub enum Placement {
    InvalidationKeys { keys: InvalidationKeys, is_certain: bool },
    Unindexed,
    AnyChange,
}

impl InvalidationIndex {
    /// Chooses where to index an entry. `is_certain`: a matching document is enough to invalidate
    /// it. `unindexed_max`: the most false positives of a key, and the most unindexed entries.
    pub fn choose_placement(&self, candidates: Vec<KeyCandidate>, is_certain: bool, unindexed_max: usize) -> Placement {
        let mut least: Option<(usize, KeyCandidate)> = None;
        for candidate in candidates {
            let is_certain = is_certain && candidate.is_exact;
            let false_positives = if is_certain { 0 } else { self.false_positives(&candidate.keys, unindexed_max) };
            if false_positives < FALSE_POSITIVES_FEW {
                return Placement::InvalidationKeys { keys: candidate.keys, is_certain };
            }
            if least.as_ref().is_none_or(|(other, _)| false_positives < *other) {
                least = Some((false_positives, candidate));
            }
        }
        // A field that most documents have is no more selective than the list of unindexed entries;
        // the same limit holds for both.
        let limit = |condition: &ValueCondition| match condition {
            ValueCondition::Equals(_) | ValueCondition::InRange(..) => unindexed_max,
            ValueCondition::Contains(_) => TRIGRAM_FALSE_POSITIVES_MAX,
            ValueCondition::Present => 0,
        };
        let limit = |candidate: &KeyCandidate| {
            candidate.keys.iter().map(|(_, condition)| limit(condition)).min().unwrap_or(unindexed_max)
        };
        match least {
            Some((false_positives, candidate)) if false_positives < limit(&candidate) => {
                Placement::InvalidationKeys { keys: candidate.keys, is_certain: false }
            }
            _ => Placement::Unindexed,
        }
    }

    /// Returns how many false positives the keys have already, up to the number that matters.
    fn false_positives(&self, keys: &InvalidationKeys, unindexed_max: usize) -> usize {
        let (mut false_positives, mut looks) = (0, 0);
        for (path, condition) in keys {
            let Some(by_path) = self.by_field.get(first_name(path)).and_then(|paths| paths.get(path.as_str())) else {
                continue;
            };
            match condition {
                ValueCondition::Present => {
                    let looked_at = by_path.by_presence.values().take(4 * unindexed_max);
                    false_positives += looked_at.filter(|is_certain| !**is_certain).count();
                }
                ValueCondition::Equals(value) => {
                    false_positives += by_path.by_value.get(&**value).map_or(0, SmallVec::len)
                }
                ValueCondition::Contains(trigram) => {
                    false_positives += by_path.by_trigram.get(trigram).map_or(0, SmallVec::len)
                }
                ValueCondition::InRange(low, high) => by_path.by_range.find(low, high, &mut |(_, is_certain)| {
                    false_positives += usize::from(!is_certain);
                    looks += 1;
                    false_positives < unindexed_max && looks < 4 * unindexed_max
                }),
            }
        }
        false_positives
    }

    /// `predicate`: of an entry that depends on matching documents.
    pub fn add(&mut self, entry: u32, placement: &Placement, predicate: Option<&Predicate>) {
        match placement {
            Placement::InvalidationKeys { keys, is_certain } => {
                for (path, condition) in keys {
                    let paths = self.by_field.entry_ref(first_name(path)).or_default();
                    let by_path = paths.entry_ref(path.as_str()).or_insert_with(|| PathIndex::new(path.clone()));
                    by_path.add((entry, *is_certain), condition);
                    if matches_missing(path, condition) {
                        *self.by_missing.entry_ref(first_name(path)).or_default() += 1;
                    }
                }
            }
            Placement::Unindexed => self.unindexed.add(entry, predicate),
            Placement::AnyChange => self.any_change.push(entry),
        }
    }

    pub fn remove(&mut self, entry: u32, placement: &Placement) {
        match placement {
            Placement::InvalidationKeys { keys, is_certain } => {
                keys.iter().for_each(|(path, condition)| self.remove_from(path, condition, (entry, *is_certain)));
            }
            Placement::Unindexed => self.unindexed.remove(entry),
            Placement::AnyChange => take_from(&mut self.any_change, entry),
        }
    }

    fn remove_from(&mut self, path: &Path, condition: &ValueCondition, label: EntryLabel) {
        let name = first_name(path);
        let Some(paths) = self.by_field.get_mut(name) else { return };
        let Some(by_path) = paths.get_mut(path.as_str()) else { return };
        by_path.remove(label, condition);
        if by_path.is_empty() {
            paths.remove(path.as_str());
        }
        if paths.is_empty() {
            self.by_field.remove(name);
        }
        if matches_missing(path, condition)
            && let Some(count) = self.by_missing.get_mut(name)
        {
            *count -= 1;
            if *count == 0 {
                self.by_missing.remove(name);
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.by_field.is_empty() && self.unindexed.is_empty() && self.any_change.is_empty()
    }

    /// The entries that every change is checked against.
    pub fn unindexed(&mut self) -> &mut UnindexedPredicates {
        &mut self.unindexed
    }

    /// Returns all entries, perhaps some more than once.
    pub fn all(&self, found: &mut Vec<u32>) {
        self.by_field.values().flat_map(ByName::values).for_each(|by_path| by_path.all(found));
        found.extend(self.unindexed.all().chain(self.any_change.iter().copied()));
    }

    /// Finds the entries that a changed document may affect, as it was or as it is; perhaps some
    /// more than once. Fields that both images have in common are looked up for the first image
    /// only.
    pub fn find_by_images(
        &self,
        before: Option<Doc<'_>>,
        after: Option<Doc<'_>>,
        changed: &ChangedFields,
        found: &mut Vec<u32>,
    ) {
        let mut keys = ValueKeys::default();
        for (document, is_second) in [(before, false), (after, before.is_some())] {
            let Some(document) = document else { continue };
            let is_looked_up = |name: &str| !is_second || changed.may_concern(name);
            let mut look = |paths: &ByName<PathIndex>| {
                paths.values().for_each(|by_path| by_path.find_by_document(document, &mut keys, found));
            };
            if self.by_field.len() <= FIELDS_FEW {
                self.by_field.iter().filter(|(name, _)| is_looked_up(name)).for_each(|(_, paths)| look(paths));
                continue;
            }
            let names = document.elements().map(|element| element.key()).filter(|name| is_looked_up(name));
            names.filter_map(|name| self.by_field.get(name)).for_each(&mut look);
            let missing = self.by_missing.keys().filter(|name| is_looked_up(name) && document.get(name).is_none());
            missing.filter_map(|name| self.by_field.get(name)).for_each(look);
        }
        self.unindexed.find_by_images(before, after, changed, found);
        found.extend(&self.any_change);
    }

    /// Finds the entries that the document with an `_id` may affect.
    pub fn find_by_id(&self, id: Value<'_>, found: &mut Vec<u32>) {
        let mut bytes = Vec::with_capacity(32);
        key::encode(id, &mut bytes);
        for by_path in self.by_field.values().flat_map(ByName::values) {
            if by_path.path == *"_id" {
                by_path.find_equal(&bytes, found);
                by_path.find_in_range(&bytes, &bytes, found);
                found.extend(by_path.by_trigram.values().flatten());
                found.extend(by_path.by_presence.keys());
            } else {
                by_path.all(found);
            }
        }
        found.extend(self.unindexed.all().chain(self.any_change.iter().copied()));
    }
}

/// Returns whether a document without the field meets the condition: a missing value counts as
/// null. A path may begin with an empty name, which reaches fields without a name.
fn matches_missing(path: &Path, condition: &ValueCondition) -> bool {
    let mut null = Vec::with_capacity(4);
    key::encode(Value::Null, &mut null);
    first_name(path).is_empty()
        || match condition {
            ValueCondition::Equals(value) => **value == *null,
            ValueCondition::InRange(low, high) => (&**low..=&**high).contains(&&*null),
            ValueCondition::Contains(_) | ValueCondition::Present => false,
        }
}

/// A Bloom filter of a text's trigrams, one bit for each; some share one.
struct TrigramFilter(Vec<u64>);

impl TrigramFilter {
    const BITS: u32 = 18;

    fn of(text: &[u8]) -> TrigramFilter {
        let mut words = vec![0; 1 << (Self::BITS - 6)];
        for trigram in trigrams(text) {
            let (word, bit) = Self::position(trigram);
            words[word] |= bit;
        }
        TrigramFilter(words)
    }

    fn may_have(&self, trigram: Trigram) -> bool {
        let (word, bit) = Self::position(trigram);
        self.0[word] & bit != 0
    }

    /// By the upper bits of a product with the golden ratio.
    fn position(trigram: Trigram) -> (usize, u64) {
        let number = trigram.wrapping_mul(0x9E37_79B1) >> (Trigram::BITS - Self::BITS);
        (number as usize >> 6, 1 << (number & 63))
    }
}

/// The keys of a document's values at a path: the current, the lowest, the highest.
#[derive(Default)]
struct ValueKeys {
    key: Vec<u8>,
    lowest: Vec<u8>,
    highest: Vec<u8>,
}

impl PathIndex {
    fn new(path: Path) -> PathIndex {
        PathIndex {
            path,
            by_value: hashbrown::HashMap::default(),
            by_range: Intervals::default(),
            by_trigram: AHashMap::default(),
            by_presence: AHashMap::default(),
        }
    }

    fn add(&mut self, label: EntryLabel, condition: &ValueCondition) {
        match condition {
            ValueCondition::Equals(value) => self.by_value.entry_ref(value).or_default().push(label.0),
            ValueCondition::InRange(low, high) => self.by_range.add(low, high, label),
            ValueCondition::Contains(trigram) => self.by_trigram.entry(*trigram).or_default().push(label.0),
            ValueCondition::Present => {
                self.by_presence.insert(label.0, label.1);
            }
        }
    }

    fn remove(&mut self, label: EntryLabel, condition: &ValueCondition) {
        match condition {
            ValueCondition::Equals(value) => {
                if let Some(entries) = self.by_value.get_mut(&**value) {
                    take(entries, label.0);
                    if entries.is_empty() {
                        self.by_value.remove(&**value);
                    }
                }
            }
            ValueCondition::InRange(low, _) => self.by_range.remove(low, label),
            ValueCondition::Contains(trigram) => {
                if let Some(entries) = self.by_trigram.get_mut(trigram) {
                    take(entries, label.0);
                    if entries.is_empty() {
                        self.by_trigram.remove(trigram);
                    }
                }
            }
            ValueCondition::Present => {
                self.by_presence.remove(&label.0);
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.by_value.is_empty()
            && self.by_range.is_empty()
            && self.by_trigram.is_empty()
            && self.by_presence.is_empty()
    }

    fn find_equal(&self, key: &[u8], found: &mut Vec<u32>) {
        found.extend(self.by_value.get(key).into_iter().flatten());
    }

    fn find_in_range(&self, lowest: &[u8], highest: &[u8], found: &mut Vec<u32>) {
        self.by_range.find(lowest, highest, &mut |(entry, _)| {
            found.push(entry);
            true
        });
    }

    fn find_containing(&self, text: &[u8], found: &mut Vec<u32>) {
        if self.by_trigram.is_empty() {
            return;
        }
        if text.len() <= TEXT_BYTES_FEW {
            found.extend(trigrams(text).filter_map(|trigram| self.by_trigram.get(&trigram)).flatten());
        } else {
            let parts = TrigramFilter::of(text);
            let there = self.by_trigram.iter().filter(|(trigram, _)| parts.may_have(**trigram));
            found.extend(there.flat_map(|(_, entries)| entries));
        }
    }

    fn all(&self, found: &mut Vec<u32>) {
        found.extend(self.by_value.values().flatten());
        self.by_range.all(&mut |(entry, _)| found.push(entry));
        found.extend(self.by_trigram.values().flatten());
        found.extend(self.by_presence.keys());
    }

    /// Each value of an array is looked up by itself. The two ends of a range may hold for
    /// different values, so ranges are looked up by the lowest and the highest.
    fn find_by_document(&self, document: Doc<'_>, keys: &mut ValueKeys, found: &mut Vec<u32>) {
        let (mut count, mut is_present) = (0, false);
        let _ = self.path.visit(document, End::Expanded, &mut |reached| {
            let ValueKeys { key, lowest, highest } = keys;
            is_present |= reached.value.is_some();
            key.clear();
            // A condition on null also holds for a missing value.
            key::encode(reached.value.unwrap_or(Value::Null), key);
            self.find_equal(key, found);
            if let Some(Value::String(text) | Value::Symbol(text)) = reached.value {
                self.find_containing(text.as_bytes(), found);
            }
            if count == 0 || *key < *lowest {
                lowest.clone_from(key);
            }
            if count == 0 || *key > *highest {
                highest.clone_from(key);
            }
            count += 1;
            ControlFlow::<()>::Continue(())
        });
        if count > 0 {
            self.find_in_range(&keys.lowest, &keys.highest, found);
        }
        if is_present {
            found.extend(self.by_presence.keys());
        }
    }
}

fn take(entries: &mut SmallVec<[u32; 2]>, entry: u32) {
    if let Some(at) = entries.iter().position(|&other| other == entry) {
        entries.swap_remove(at);
    }
}

fn take_from(entries: &mut Vec<u32>, entry: u32) {
    if let Some(at) = entries.iter().position(|&other| other == entry) {
        entries.remove(at);
    }
}
