//! Which answers a change may matter to, found without asking each.
//!
//! A filter that asks a field to have a value, or one in a range, or a text with something in it, or any at all, is filed under that: only
//! documents with such a value can match. What cannot be filed so, or only with many others that it is not told from there, is in a list that
//! every change of the collection goes through; the list is kept short. With filters on many fields, a document's own fields say which of
//! them are looked at.

use crate::changed_fields::Changed;
use crate::intervals::Intervals;
use crate::invalidation_keys::{Spot, Trigram, Under, Way, trigrams};
use crate::unindexed_predicates::Listed;
use ahash::AHashMap;
use document::path::{End, Path};
use document::{Doc, Value, key};
use query::Predicate;
use smallvec::SmallVec;
use std::ops::ControlFlow;

/// Where as many answers are found in vain already, another way is looked for.
const CROWD: usize = 2;

/// A text has many parts: where one of them leads to so many answers, no more are filed.
const TEXT_CROWD: usize = 16;

/// The parts of longer texts are noted, and those that answers are filed under are looked for among them.
const TEXT_BYTES_FEW: usize = 1024;

/// With filters on more fields than this, those are looked at that the document has.
const FIELDS_FEW: usize = 8;

/// The answers made from one collection, by what they are filed under.
#[derive(Default)]
pub struct Filed {
    /// By the first name in a path, and the path.
    by_field: ByName<ByName<ByPath>>,
    /// First names of paths under which documents may be found that do not have the field, with how often that is.
    by_missing: ByName<usize>,
    listed: Listed,
    /// Those that every change throws out.
    everything: Vec<u32>,
}

/// The standard library's tables have no entries by borrowed names.
type ByName<V> = hashbrown::HashMap<String, V, ahash::RandomState>;

struct ByPath {
    path: Path,
    by_value: hashbrown::HashMap<Box<[u8]>, SmallVec<[u32; 2]>, ahash::RandomState>,
    by_range: Intervals<Label>,
    by_trigram: AHashMap<Trigram, SmallVec<[u32; 2]>>,
    /// Those that any value matters to.
    by_presence: AHashMap<u32, bool>,
}

/// An answer, and whether it is never found in vain.
type Label = (u32, bool);

/// Where one answer is filed.
#[derive(Clone, Debug)]
pub enum Place {
    Under { under: Under, is_certain: bool },
    List,
    Everything,
}

impl Filed {
    /// Where to file an answer that can be filed in these ways. `is_certain`: a document that matches is all it takes for the answer to go.
    /// `listed_max`: so many may be found in vain, in the list, or where they cannot be told from each other.
    pub fn choose(&self, ways: Vec<Way>, is_certain: bool, listed_max: usize) -> Place {
        let mut least: Option<(usize, Way)> = None;
        for way in ways {
            let is_certain = is_certain && way.is_exact;
            let crowd = if is_certain { 0 } else { self.crowd(&way.under, listed_max) };
            if crowd < CROWD {
                return Place::Under { under: way.under, is_certain };
            }
            if least.as_ref().is_none_or(|(other, _)| crowd < *other) {
                least = Some((crowd, way));
            }
        }
        // A field that most documents have tells no more of a change than the list, which is as long as it may be for both.
        let limit = |spot: &Spot| match spot {
            Spot::At(_) | Spot::Between(..) => listed_max,
            Spot::Containing(_) => TEXT_CROWD,
            Spot::Present => 0,
        };
        let limit = |way: &Way| way.under.iter().map(|(_, spot)| limit(spot)).min().unwrap_or(listed_max);
        match least {
            Some((crowd, way)) if crowd < limit(&way) => Place::Under { under: way.under, is_certain: false },
            _ => Place::List,
        }
    }

    /// How many are found in vain already where an answer would be; not counted further than matters.
    fn crowd(&self, under: &Under, listed_max: usize) -> usize {
        let (mut crowd, mut looks) = (0, 0);
        for (path, spot) in under {
            let Some(by_path) = self.by_field.get(first_name(path)).and_then(|paths| paths.get(path.as_str())) else {
                continue;
            };
            match spot {
                Spot::Present => {
                    let looked_at = by_path.by_presence.values().take(4 * listed_max);
                    crowd += looked_at.filter(|is_certain| !**is_certain).count();
                }
                Spot::At(value) => crowd += by_path.by_value.get(&**value).map_or(0, SmallVec::len),
                Spot::Containing(trigram) => crowd += by_path.by_trigram.get(trigram).map_or(0, SmallVec::len),
                Spot::Between(low, high) => by_path.by_range.find(low, high, &mut |(_, is_certain)| {
                    crowd += usize::from(!is_certain);
                    looks += 1;
                    crowd < listed_max && looks < 4 * listed_max
                }),
            }
        }
        crowd
    }

    /// `predicate`: of an answer made from documents that match.
    pub fn add(&mut self, answer: u32, place: &Place, predicate: Option<&Predicate>) {
        match place {
            Place::Under { under, is_certain } => {
                for (path, spot) in under {
                    let paths = self.by_field.entry_ref(first_name(path)).or_default();
                    let by_path = paths.entry_ref(path.as_str()).or_insert_with(|| ByPath::new(path.clone()));
                    by_path.add((answer, *is_certain), spot);
                    if is_for_missing(path, spot) {
                        *self.by_missing.entry_ref(first_name(path)).or_default() += 1;
                    }
                }
            }
            Place::List => self.listed.add(answer, predicate),
            Place::Everything => self.everything.push(answer),
        }
    }

    pub fn remove(&mut self, answer: u32, place: &Place) {
        match place {
            Place::Under { under, is_certain } => {
                under.iter().for_each(|(path, spot)| self.remove_from(path, spot, (answer, *is_certain)));
            }
            Place::List => self.listed.remove(answer),
            Place::Everything => take_from(&mut self.everything, answer),
        }
    }

    fn remove_from(&mut self, path: &Path, spot: &Spot, label: Label) {
        let name = first_name(path);
        let Some(paths) = self.by_field.get_mut(name) else { return };
        let Some(by_path) = paths.get_mut(path.as_str()) else { return };
        by_path.remove(label, spot);
        if by_path.is_empty() {
            paths.remove(path.as_str());
        }
        if paths.is_empty() {
            self.by_field.remove(name);
        }
        if is_for_missing(path, spot)
            && let Some(count) = self.by_missing.get_mut(name)
        {
            *count -= 1;
            if *count == 0 {
                self.by_missing.remove(name);
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.by_field.is_empty() && self.listed.is_empty() && self.everything.is_empty()
    }

    /// Those that every change is held against.
    pub fn listed(&mut self) -> &mut Listed {
        &mut self.listed
    }

    /// All answers, some perhaps more than once.
    pub fn all(&self, found: &mut Vec<u32>) {
        self.by_field.values().flat_map(ByName::values).for_each(|by_path| by_path.all(found));
        found.extend(self.listed.all().chain(self.everything.iter().copied()));
    }

    /// Answers that a document may matter to, as it was or as it is; some perhaps more than once. What both images have in common is
    /// looked up for the first alone.
    pub fn of_images(&self, before: Option<Doc<'_>>, after: Option<Doc<'_>>, changed: &Changed, found: &mut Vec<u32>) {
        let mut keys = Keys::default();
        for (document, is_second) in [(before, false), (after, before.is_some())] {
            let Some(document) = document else { continue };
            let is_looked_up = |name: &str| !is_second || changed.may_be_about(name);
            let mut look = |paths: &ByName<ByPath>| {
                paths.values().for_each(|by_path| by_path.of_document(document, &mut keys, found));
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
        self.listed.of_images(before, after, changed, found);
        found.extend(&self.everything);
    }

    /// Answers that the document with an `_id` may matter to.
    pub fn of_id(&self, id: Value<'_>, found: &mut Vec<u32>) {
        let mut bytes = Vec::with_capacity(32);
        key::encode(id, &mut bytes);
        for by_path in self.by_field.values().flat_map(ByName::values) {
            if by_path.path == *"_id" {
                by_path.at(&bytes, found);
                by_path.between(&bytes, &bytes, found);
                found.extend(by_path.by_trigram.values().flatten());
                found.extend(by_path.by_presence.keys());
            } else {
                by_path.all(found);
            }
        }
        found.extend(self.listed.all().chain(self.everything.iter().copied()));
    }
}

/// The name of the field that a path begins with.
pub fn first_name(path: &Path) -> &str {
    path.components().next().unwrap_or_default()
}

/// Whether a document without the field may be found there: what is missing counts as null. A path may begin with no name, and reach
/// what has none.
fn is_for_missing(path: &Path, spot: &Spot) -> bool {
    let mut null = Vec::with_capacity(4);
    key::encode(Value::Null, &mut null);
    first_name(path).is_empty()
        || match spot {
            Spot::At(value) => **value == *null,
            Spot::Between(low, high) => (&**low..=&**high).contains(&&*null),
            Spot::Containing(_) | Spot::Present => false,
        }
}

/// The trigrams of a text, a bit for each; some share one.
struct Parts(Vec<u64>);

impl Parts {
    const BITS: u32 = 18;

    fn of(text: &[u8]) -> Parts {
        let mut words = vec![0; 1 << (Self::BITS - 6)];
        for trigram in trigrams(text) {
            let (word, bit) = Self::place(trigram);
            words[word] |= bit;
        }
        Parts(words)
    }

    fn may_have(&self, trigram: Trigram) -> bool {
        let (word, bit) = Self::place(trigram);
        self.0[word] & bit != 0
    }

    /// By the upper bits of a product with the golden ratio's.
    fn place(trigram: Trigram) -> (usize, u64) {
        let number = trigram.wrapping_mul(0x9E37_79B1) >> (Trigram::BITS - Self::BITS);
        (number as usize >> 6, 1 << (number & 63))
    }
}

/// Keys of a document's values: the one being looked at, the lowest, the highest.
#[derive(Default)]
struct Keys {
    key: Vec<u8>,
    lowest: Vec<u8>,
    highest: Vec<u8>,
}

impl ByPath {
    fn new(path: Path) -> ByPath {
        ByPath {
            path,
            by_value: hashbrown::HashMap::default(),
            by_range: Intervals::default(),
            by_trigram: AHashMap::default(),
            by_presence: AHashMap::default(),
        }
    }

    fn add(&mut self, label: Label, spot: &Spot) {
        match spot {
            Spot::At(value) => self.by_value.entry_ref(value).or_default().push(label.0),
            Spot::Between(low, high) => self.by_range.add(low, high, label),
            Spot::Containing(trigram) => self.by_trigram.entry(*trigram).or_default().push(label.0),
            Spot::Present => {
                self.by_presence.insert(label.0, label.1);
            }
        }
    }

    fn remove(&mut self, label: Label, spot: &Spot) {
        match spot {
            Spot::At(value) => {
                if let Some(answers) = self.by_value.get_mut(&**value) {
                    take(answers, label.0);
                    if answers.is_empty() {
                        self.by_value.remove(&**value);
                    }
                }
            }
            Spot::Between(low, _) => self.by_range.remove(low, label),
            Spot::Containing(trigram) => {
                if let Some(answers) = self.by_trigram.get_mut(trigram) {
                    take(answers, label.0);
                    if answers.is_empty() {
                        self.by_trigram.remove(trigram);
                    }
                }
            }
            Spot::Present => {
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

    fn at(&self, key: &[u8], found: &mut Vec<u32>) {
        found.extend(self.by_value.get(key).into_iter().flatten());
    }

    fn between(&self, lowest: &[u8], highest: &[u8], found: &mut Vec<u32>) {
        self.by_range.find(lowest, highest, &mut |(answer, _)| {
            found.push(answer);
            true
        });
    }

    fn containing(&self, text: &[u8], found: &mut Vec<u32>) {
        if self.by_trigram.is_empty() {
            return;
        }
        if text.len() <= TEXT_BYTES_FEW {
            found.extend(trigrams(text).filter_map(|trigram| self.by_trigram.get(&trigram)).flatten());
        } else {
            let parts = Parts::of(text);
            let there = self.by_trigram.iter().filter(|(trigram, _)| parts.may_have(**trigram));
            found.extend(there.flat_map(|(_, answers)| answers));
        }
    }

    fn all(&self, found: &mut Vec<u32>) {
        found.extend(self.by_value.values().flatten());
        self.by_range.all(&mut |(answer, _)| found.push(answer));
        found.extend(self.by_trigram.values().flatten());
        found.extend(self.by_presence.keys());
    }

    /// The values of an array each for themselves. The two ends of a range may hold for different ones, so what counts is what lies
    /// between the lowest and the highest.
    fn of_document(&self, document: Doc<'_>, keys: &mut Keys, found: &mut Vec<u32>) {
        let (mut count, mut is_present) = (0, false);
        let _ = self.path.visit(document, End::Expanded, &mut |reached| {
            let Keys { key, lowest, highest } = keys;
            is_present |= reached.value.is_some();
            key.clear();
            // Who asks for null means what is missing, too.
            key::encode(reached.value.unwrap_or(Value::Null), key);
            self.at(key, found);
            if let Some(Value::String(text) | Value::Symbol(text)) = reached.value {
                self.containing(text.as_bytes(), found);
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
            self.between(&keys.lowest, &keys.highest, found);
        }
        if is_present {
            found.extend(self.by_presence.keys());
        }
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
