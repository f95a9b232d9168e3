//! The stored data: the documents, and the contents of a document at each of its versions.
//!
//! A document is a function of its id and its version, so that a reply can be checked by itself.
//! Ids are consecutive: those of the main collection, then one of the side collection per block of
//! the main one, then one per collection that is renamed and dropped.

use document::{DocBuf, DocWriter, doc};
use std::ops::Range;

pub type Id = u32;
pub type Version = u32;

/// Documents that one writer claims together.
pub const BLOCK: u32 = 8;
/// Documents that a group is a part of: a read of a group concerns so many.
pub const PARTITION: u32 = 64;
/// Groups of a partition.
pub const GROUPS: u32 = 8;
/// Every document is deleted at one of so many versions.
const DELETED_EVERY: u32 = 13;
/// Steps in the lifecycle of a renamed collection, which repeats.
pub const LIFECYCLE_STEPS: u32 = 5;
/// Collections that are renamed and dropped.
pub const RENAMED_COLLECTIONS: u32 = 4;

pub const MAIN: &str = "truth";
pub const SIDE: &str = "truth_side";

/// The collection that a document is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    Main,
    Side,
    /// The renamed collection with this number, under its original name.
    Original(u32),
    /// The same, under its temporary name.
    Temporary(u32),
}

#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Documents of the main collection, a multiple of [`TERRITORY`].
    pub main: u32,
    /// Bytes of padding per document.
    pub pad: usize,
}

/// The fields of a document besides `_id` and `pad`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fields {
    pub v: i32,
    /// Its block.
    pub b: i32,
    /// Its partition.
    pub t: i32,
    /// Its group, which changes with the version and stays in the partition.
    pub g: i32,
    pub n: i32,
    pub s: String,
    /// The document of the side collection that belongs to it.
    pub j: i32,
}

impl Layout {
    pub fn side(&self) -> Range<Id> {
        self.main..self.main + self.main / BLOCK
    }

    /// Returns the number of ids; some of the last ones are unused.
    pub fn count(&self) -> u32 {
        self.renamed(RENAMED_COLLECTIONS)
    }

    /// Returns the document of a renamed collection. Each is in a block of its own.
    pub fn renamed(&self, number: u32) -> Id {
        self.side().end.next_multiple_of(BLOCK) + number * BLOCK
    }

    pub fn blocks(&self) -> u32 {
        self.count() / BLOCK
    }

    /// Returns the documents of a partition of the main collection.
    pub fn partition(&self, number: u32) -> Range<Id> {
        number * PARTITION..(number + 1) * PARTITION
    }

    /// Returns the collection that a document is written to.
    pub fn location(&self, id: Id) -> Location {
        if id < self.main {
            Location::Main
        } else if id < self.side().end {
            Location::Side
        } else {
            Location::Original((id - self.renamed(0)) / BLOCK)
        }
    }

    /// Returns the documents of a block.
    pub fn block(&self, number: u32) -> Range<Id> {
        let begin = number * BLOCK;
        let end = if begin < self.main { begin + BLOCK } else { (begin + BLOCK).min(self.side().end) };
        begin..end
    }

    pub fn fields(&self, id: Id, version: Version) -> Fields {
        let (b, t) = (id / BLOCK, id / PARTITION);
        Fields {
            v: version as i32,
            b: b as i32,
            t: t as i32,
            g: (t * GROUPS + b.wrapping_mul(3).wrapping_add(version) % GROUPS) as i32,
            n: self.number(id, version),
            s: text(b.wrapping_add(version) % TEXTS),
            j: (self.main + b) as i32,
        }
    }

    pub fn group(&self, id: Id, version: Version) -> i32 {
        let (b, t) = (id / BLOCK, id / PARTITION);
        (t * GROUPS + b.wrapping_mul(3).wrapping_add(version) % GROUPS) as i32
    }

    pub fn number(&self, id: Id, version: Version) -> i32 {
        ((id / BLOCK).wrapping_mul(31).wrapping_add(version.wrapping_mul(17)) % NUMBERS) as i32
    }

    /// Returns the whole document, for an insert.
    pub fn document(&self, id: Id, version: Version) -> DocBuf {
        DocBuf::build(|writer| {
            writer.append("_id", id as i32);
            self.append_rest(id, version, writer);
        })
    }

    /// Appends the whole document except its `_id`.
    pub fn append_rest(&self, id: Id, version: Version, writer: &mut DocWriter<'_>) {
        let fields = self.fields(id, version);
        for (name, number) in [("b", fields.b), ("t", fields.t), ("j", fields.j)] {
            writer.append(name, number);
        }
        for (name, number) in [("v", fields.v), ("g", fields.g), ("n", fields.n)] {
            writer.append(name, number);
        }
        writer.append("s", &fields.s);
        writer.append("pad", PAD.get(..self.pad.min(PAD.len())).unwrap_or(PAD));
    }

    /// Returns the fields of the `$set` that takes a document of this block to `version`.
    pub fn changes(&self, id: Id, version: Version) -> DocBuf {
        let fields = self.fields(id, version);
        doc! { "v": fields.v, "g": fields.g, "n": fields.n, "s": &fields.s }
    }
}

/// Returns the version whose contents a read of `location` finds when the document is at `version`;
/// `None` if it finds no document.
pub fn visible_version(location: Location, id: Id, version: Version) -> Option<Version> {
    match location {
        Location::Main | Location::Side => (!is_deleted(id, version)).then_some(version),
        Location::Original(_) => match version % LIFECYCLE_STEPS {
            // Inserted; renamed; renamed back; updated; dropped.
            0 | 3 => Some(version),
            2 => Some(version - 2),
            _ => None,
        },
        Location::Temporary(_) => (version % LIFECYCLE_STEPS == 1).then(|| version - 1),
    }
}

fn is_deleted(id: Id, version: Version) -> bool {
    (id.wrapping_add(version)).is_multiple_of(DELETED_EVERY)
}

/// `n` is below this.
pub const NUMBERS: u32 = 1000;
/// The number of values of `s`.
pub const TEXTS: u32 = 16;
const PAD: &str = match std::str::from_utf8(&[b'.'; 4096]) {
    Ok(text) => text,
    Err(_) => "",
};

pub fn text(number: u32) -> String {
    format!("text {number:02}")
}

/// Returns an update pipeline that takes any document to its next version (see [`Layout::fields`]).
pub fn next_version_pipeline() -> document::ValueBuf {
    let v = document::array!["$v", 1i32];
    let next = doc! { "v": &doc! { "$add": &v } };
    let modulo = |value: DocBuf, by: u32| doc! { "$mod": &document::array![&value, by as i32] };
    let sum = |terms: document::ValueBuf| doc! { "$add": &terms };
    let times = |field: &str, by: i32| doc! { "$multiply": &document::array![field, by] };
    let within = modulo(sum(document::array![&times("$b", 3), "$v"]), GROUPS);
    let group = sum(document::array![&times("$t", GROUPS as i32), &within]);
    let number = modulo(sum(document::array![&times("$b", 31), &times("$v", 17)]), NUMBERS);
    let digits = doc! { "$toString": &modulo(sum(document::array!["$b", "$v"]), TEXTS) };
    let padded = doc! { "$concat": &document::array!["0", &digits] };
    // The last two characters of `0` and the number.
    let start = doc! { "$subtract": &document::array![&doc! { "$strLenCP": &padded }, 2i32] };
    let tail = doc! { "$substrCP": &document::array![&padded, &start, 2i32] };
    let text = doc! { "$concat": &document::array!["text ", &tail] };
    let rest = doc! { "g": &group, "n": &number, "s": &text };
    document::array![&doc! { "$set": &next }, &doc! { "$set": &rest }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique() {
        let layout = Layout { main: 128, pad: 10 };
        assert_eq!(layout.side(), 128..144);
        assert_eq!(layout.location(127), Location::Main);
        assert_eq!(layout.location(128), Location::Side);
        assert_eq!(layout.location(layout.renamed(3)), Location::Original(3));
        assert!(layout.renamed(RENAMED_COLLECTIONS - 1) < layout.count());
        let ids: Vec<Id> = (0..layout.renamed(0) / BLOCK).flat_map(|block| layout.block(block)).collect();
        assert_eq!(ids, (0..layout.side().end).collect::<Vec<_>>());
    }

    #[test]
    fn a_documents_group_changes_within_its_partition() {
        let layout = Layout { main: 128, pad: 10 };
        for id in 0..128 {
            let groups: Vec<i32> = (0..GROUPS).map(|version| layout.fields(id, version).g).collect();
            assert!(groups.iter().all(|group| *group as u32 / GROUPS == id / PARTITION));
            assert_eq!(groups.iter().collect::<std::collections::HashSet<_>>().len(), GROUPS as usize);
        }
    }

    #[test]
    fn no_document_is_deleted_at_two_consecutive_versions() {
        for version in 0..100 {
            assert!(
                visible_version(Location::Main, 5, version).is_some()
                    || visible_version(Location::Main, 5, version + 1).is_some()
            );
        }
        assert!((0..20).any(|version| visible_version(Location::Main, 5, version).is_none()));
    }

    #[test]
    fn a_renamed_collection_has_one_name_at_a_time() {
        for version in 5..20 {
            let (original, temporary) = (
                visible_version(Location::Original(0), 0, version),
                visible_version(Location::Temporary(0), 0, version),
            );
            assert!(original.is_none() || temporary.is_none());
            assert_eq!(original.is_none() && temporary.is_none(), version % LIFECYCLE_STEPS == 4);
        }
    }
}
