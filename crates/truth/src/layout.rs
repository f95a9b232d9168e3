//! What is stored: which documents there are, and what a document holds at each of its versions.
//!
//! A document is a function of its number and its version, so that an answer can be judged by itself. Numbers are dealt out in one row: the
//! main collection's, then one of the side collection per block of the main one, then one per collection that is renamed and dropped.

use document::{DocBuf, DocWriter, doc};
use std::ops::Range;

pub type Id = u32;
pub type Version = u32;

/// Documents that one writer has to itself, together.
pub const BLOCK: u32 = 8;
/// Documents among which the groups are: whoever asks for a group has to look at so many.
pub const TERRITORY: u32 = 64;
/// Groups of a territory.
pub const GROUPS: u32 = 8;
/// Every document is gone at one of so many versions.
const GONE_EVERY: u32 = 13;
/// What a collection that is renamed and dropped goes through, again and again.
pub const TURNS: u32 = 5;
/// Collections that are renamed and dropped.
pub const RENAMED: u32 = 4;

pub const MAIN: &str = "truth";
pub const SIDE: &str = "truth_side";

/// Where a document is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Main,
    Side,
    /// The collection with this number, under its own name.
    Home(u32),
    /// The same, under the name that it has for a while.
    Away(u32),
}

#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Documents of the main collection, a multiple of [`TERRITORY`].
    pub main: u32,
    /// Bytes that each document carries beside what is looked at.
    pub pad: usize,
}

/// What a document holds beside `_id` and `pad`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fields {
    pub v: i32,
    /// Its block.
    pub b: i32,
    /// Its territory.
    pub t: i32,
    /// Its group, which changes with the version and stays in the territory.
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

    /// Documents there are numbers for; some of the last ones stand for nothing.
    pub fn count(&self) -> u32 {
        self.renamed(RENAMED)
    }

    /// The document that stands for a collection that is renamed and dropped. Each has a block of its own.
    pub fn renamed(&self, number: u32) -> Id {
        self.side().end.next_multiple_of(BLOCK) + number * BLOCK
    }

    pub fn blocks(&self) -> u32 {
        self.count() / BLOCK
    }

    /// Documents of a territory of the main collection.
    pub fn territory(&self, number: u32) -> Range<Id> {
        number * TERRITORY..(number + 1) * TERRITORY
    }

    /// The collection and its documents that are written to by the documents' own commands.
    pub fn place(&self, id: Id) -> Place {
        if id < self.main {
            Place::Main
        } else if id < self.side().end {
            Place::Side
        } else {
            Place::Home((id - self.renamed(0)) / BLOCK)
        }
    }

    /// The documents of a block that exist by the layout.
    pub fn block(&self, number: u32) -> Range<Id> {
        let begin = number * BLOCK;
        let end = if begin < self.main { begin + BLOCK } else { (begin + BLOCK).min(self.side().end) };
        begin..end
    }

    pub fn fields(&self, id: Id, version: Version) -> Fields {
        let (b, t) = (id / BLOCK, id / TERRITORY);
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
        let (b, t) = (id / BLOCK, id / TERRITORY);
        (t * GROUPS + b.wrapping_mul(3).wrapping_add(version) % GROUPS) as i32
    }

    pub fn number(&self, id: Id, version: Version) -> i32 {
        ((id / BLOCK).wrapping_mul(31).wrapping_add(version.wrapping_mul(17)) % NUMBERS) as i32
    }

    /// The whole document, as it is inserted and replaced.
    pub fn document(&self, id: Id, version: Version) -> DocBuf {
        DocBuf::build(|writer| {
            writer.append("_id", id as i32);
            self.append_rest(id, version, writer);
        })
    }

    /// The whole document but for its `_id`.
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

    /// What `$set` has to set to bring a document of this block to that version.
    pub fn changes(&self, id: Id, version: Version) -> DocBuf {
        let fields = self.fields(id, version);
        doc! { "v": fields.v, "g": fields.g, "n": fields.n, "s": &fields.s }
    }
}

/// The version that a document shows at that place when it is at `version`; `None` when there is none to be seen.
pub fn shown(place: Place, id: Id, version: Version) -> Option<Version> {
    match place {
        Place::Main | Place::Side => (!is_gone(id, version)).then_some(version),
        Place::Home(_) => match version % TURNS {
            // Inserted; renamed; renamed back; updated; dropped.
            0 | 3 => Some(version),
            2 => Some(version - 2),
            _ => None,
        },
        Place::Away(_) => (version % TURNS == 1).then(|| version - 1),
    }
}

fn is_gone(id: Id, version: Version) -> bool {
    (id.wrapping_add(version)).is_multiple_of(GONE_EVERY)
}

/// `n` is below this.
pub const NUMBERS: u32 = 1000;
/// Of `s` there are so many.
pub const TEXTS: u32 = 16;
const PAD: &str = match std::str::from_utf8(&[b'.'; 4096]) {
    Ok(text) => text,
    Err(_) => "",
};

pub fn text(number: u32) -> String {
    format!("text {number:02}")
}

/// A pipeline that brings any document to its next version, as [`Layout::fields`] has it.
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
    fn numbers_are_dealt_out_once() {
        let layout = Layout { main: 128, pad: 10 };
        assert_eq!(layout.side(), 128..144);
        assert_eq!(layout.place(127), Place::Main);
        assert_eq!(layout.place(128), Place::Side);
        assert_eq!(layout.place(layout.renamed(3)), Place::Home(3));
        assert!(layout.renamed(RENAMED - 1) < layout.count());
        let ids: Vec<Id> = (0..layout.renamed(0) / BLOCK).flat_map(|block| layout.block(block)).collect();
        assert_eq!(ids, (0..layout.side().end).collect::<Vec<_>>());
    }

    #[test]
    fn a_group_stays_in_its_territory_and_moves_within() {
        let layout = Layout { main: 128, pad: 10 };
        for id in 0..128 {
            let groups: Vec<i32> = (0..GROUPS).map(|version| layout.fields(id, version).g).collect();
            assert!(groups.iter().all(|group| *group as u32 / GROUPS == id / TERRITORY));
            assert_eq!(groups.iter().collect::<std::collections::HashSet<_>>().len(), GROUPS as usize);
        }
    }

    #[test]
    fn no_document_is_gone_twice_in_a_row() {
        for version in 0..100 {
            assert!(shown(Place::Main, 5, version).is_some() || shown(Place::Main, 5, version + 1).is_some());
        }
        assert!((0..20).any(|version| shown(Place::Main, 5, version).is_none()));
    }

    #[test]
    fn a_collection_is_at_home_or_away() {
        for version in 5..20 {
            let (home, away) = (shown(Place::Home(0), 0, version), shown(Place::Away(0), 0, version));
            assert!(home.is_none() || away.is_none());
            assert_eq!(home.is_none() && away.is_none(), version % TURNS == 4);
        }
    }
}
