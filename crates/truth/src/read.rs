//! The kinds of reads: each with its command and the expectations of its reply.

use super::check::{Condition, Order, Scope, SentRead};
use super::decode::{ALL_FIELDS, FieldNames, PROJECTED_FIELDS};
use super::kind::OperationKind;
use super::layout::{
    BLOCK, GROUPS, Id, Location, MAIN, NUMBERS, PARTITION, RENAMED_COLLECTIONS, SIDE, TEXTS, text, visible_version,
};
use super::model::{Model, Source};
use document::{ArrayWriter, Doc, DocBuf, Value, ValueBuf, array, doc};
use harness::random::SplitMix;
use std::ops::Range;

/// A read to send.
pub struct Read {
    pub kind: OperationKind,
    pub command: DocBuf,
    pub sent: SentRead,
    pub expected: ExpectedReply,
}

/// The contents of the reply.
pub enum ExpectedReply {
    Documents(FieldNames),
    /// Documents in several batches.
    Batches {
        collection: String,
    },
    Count,
    Distinct,
    Groups,
    /// Documents with an array of others, which are checked separately.
    Joined(Box<SentRead>),
}

/// Returns the original name of a renamed collection.
pub fn original_name(number: u32) -> String {
    format!("truth_moved_{number}")
}

/// Returns the name that the collection is renamed to.
pub fn temporary_name(number: u32) -> String {
    format!("truth_away_{number}")
}

pub fn collection(location: Location) -> String {
    match location {
        Location::Main => MAIN.to_owned(),
        Location::Side => SIDE.to_owned(),
        Location::Original(number) => original_name(number),
        Location::Temporary(number) => temporary_name(number),
    }
}

/// Generates reads through one source.
pub struct ReadGenerator<'m> {
    pub model: &'m Model,
    pub source: Source,
}

/// The documents that a read asks for, and its filter.
struct ReadSpec {
    kind: OperationKind,
    location: Location,
    scope: Scope,
    condition: Condition,
    keys_change: bool,
    filter: DocBuf,
}

impl ReadGenerator<'_> {
    /// Returns a random read; each kind has a weight.
    pub fn any(&self, random: &mut SplitMix) -> Read {
        match random.below(100) {
            0..40 => self.by_id(self.pick_any(random)),
            40..48 => self.by_ids(random),
            48..58 => self.find(self.group(random, OperationKind::FindGroup)),
            58..62 => self.find(self.condition(random, OperationKind::FindRange)),
            62..66 => self.sorted(random),
            66..68 => self.sorted_by_id(random),
            68..74 => self.projected(random),
            74..80 => self.counted(random),
            80..84 => self.distinct(random),
            84..90 => self.grouped(random),
            90..93 => self.joined(random),
            93..95 => self.joined_back(random),
            95..98 => self.batches(random),
            _ => self.renamed(random),
        }
    }

    pub fn by_id(&self, id: Id) -> Read {
        let location = self.model.layout.location(id);
        let filter = doc! { "_id": id as i32 };
        let spec = ReadSpec { kind: OperationKind::FindId, ..read_spec(location, Scope::Ids(vec![id]), filter) };
        self.find(spec)
    }

    fn by_ids(&self, random: &mut SplitMix) -> Read {
        let begin = self.pick(random) / BLOCK * BLOCK;
        let ids: Vec<Id> = (begin..begin + BLOCK).step_by(1 + random.below(3) as usize).collect();
        let filter = doc! { "_id": &doc! { "$in": &numbers(&ids) } };
        self.find(ReadSpec { kind: OperationKind::FindIds, ..read_spec(Location::Main, Scope::Ids(ids), filter) })
    }

    fn projected(&self, random: &mut SplitMix) -> Read {
        let spec = match random.below(2) {
            0 => self.group(random, OperationKind::FindProjected),
            _ => {
                let id = self.pick(random);
                read_spec(Location::Main, Scope::Ids(vec![id]), doc! { "_id": id as i32 })
            }
        };
        let mut read = self.find(ReadSpec { kind: OperationKind::FindProjected, ..spec });
        read.command.append("projection", &doc! { "v": 1i32, "s": 1i32, "g": 1i32 });
        Read { expected: ExpectedReply::Documents(PROJECTED_FIELDS), ..read }
    }

    fn sorted(&self, random: &mut SplitMix) -> Read {
        let limit = 1 + random.below(2) as i32 * 4;
        let (range, partition) = self.partition(random);
        let filter = doc! { "t": partition };
        let spec = ReadSpec {
            kind: OperationKind::FindSorted,
            keys_change: true,
            ..read_spec(Location::Main, Scope::Range(range), filter)
        };
        let mut read = self.find(spec);
        read.command.append("sort", &doc! { "n": -1i32 });
        read.command.append("limit", limit);
        (read.sent.order, read.sent.limit) = (Order::Number, limit as usize);
        read
    }

    fn sorted_by_id(&self, random: &mut SplitMix) -> Read {
        let begin = self.pick(random) / BLOCK * BLOCK;
        // A partition is enough for ten documents, as few are deleted at a time.
        let range = begin..self.model.layout.main.min(begin + PARTITION);
        let filter = doc! { "_id": &doc! { "$gte": begin as i32, "$lt": range.end as i32 } };
        let mut read = self.find(ReadSpec {
            kind: OperationKind::FindSorted,
            ..read_spec(Location::Main, Scope::Range(range), filter)
        });
        read.command.append("sort", &doc! { "_id": 1i32 });
        read.command.append("limit", 10i32);
        (read.sent.order, read.sent.limit) = (Order::Id, 10);
        read
    }

    fn counted(&self, random: &mut SplitMix) -> Read {
        let spec = match random.below(3) {
            0 => self.condition(random, OperationKind::Count),
            _ => self.group(random, OperationKind::Count),
        };
        let command = doc! { "count": MAIN, "query": &spec.filter };
        self.read(spec, command, ExpectedReply::Count)
    }

    fn distinct(&self, random: &mut SplitMix) -> Read {
        let (range, partition) = self.partition(random);
        let spec = ReadSpec {
            kind: OperationKind::Distinct,
            ..read_spec(Location::Main, Scope::Range(range), doc! { "t": partition })
        };
        let command = doc! { "distinct": MAIN, "key": "g", "query": &spec.filter };
        self.read(spec, command, ExpectedReply::Distinct)
    }

    fn grouped(&self, random: &mut SplitMix) -> Read {
        let spec = match random.below(2) {
            0 => self.group(random, OperationKind::Group),
            _ => {
                let (range, partition) = self.partition(random);
                ReadSpec {
                    kind: OperationKind::Group,
                    ..read_spec(Location::Main, Scope::Range(range), doc! { "t": partition })
                }
            }
        };
        let group = doc! { "_id": "$g", "count": &doc! { "$sum": 1i32 }, "sum": &doc! { "$sum": "$n" } };
        let pipeline = array![&doc! { "$match": &spec.filter }, &doc! { "$group": &group }];
        self.read(spec, aggregate(MAIN, &pipeline), ExpectedReply::Groups)
    }

    /// Joins a document of the main collection with its document in the side collection.
    fn joined(&self, random: &mut SplitMix) -> Read {
        let id = self.pick(random);
        let side = self.model.layout.main + id / BLOCK;
        let inner = self.sent(&read_spec(Location::Side, Scope::Ids(vec![side]), doc! {}));
        let spec = read_spec(Location::Main, Scope::Ids(vec![id]), doc! { "_id": id as i32 });
        let lookup = doc! { "from": SIDE, "localField": "j", "foreignField": "_id", "as": "joined" };
        self.lookup(spec, MAIN, &lookup, inner)
    }

    /// Joins a document of the side collection with its block of the main one.
    fn joined_back(&self, random: &mut SplitMix) -> Read {
        let block = self.pick(random) / BLOCK;
        let side = self.model.layout.main + block;
        let inner = self.sent(&read_spec(Location::Main, Scope::Range(block * BLOCK..(block + 1) * BLOCK), doc! {}));
        let spec = read_spec(Location::Side, Scope::Ids(vec![side]), doc! { "_id": side as i32 });
        let lookup = doc! { "from": MAIN, "localField": "_id", "foreignField": "j", "as": "joined" };
        self.lookup(spec, SIDE, &lookup, inner)
    }

    fn lookup(&self, spec: ReadSpec, collection: &str, lookup: &DocBuf, inner: SentRead) -> Read {
        let pipeline = array![&doc! { "$match": &spec.filter }, &doc! { "$lookup": lookup }];
        let spec = ReadSpec { kind: OperationKind::Lookup, ..spec };
        self.read(spec, aggregate(collection, &pipeline), ExpectedReply::Joined(Box::new(inner)))
    }

    fn batches(&self, random: &mut SplitMix) -> Read {
        let (range, partition) = self.partition(random);
        let spec = ReadSpec {
            kind: OperationKind::FindBatches,
            ..read_spec(Location::Main, Scope::Range(range), doc! { "t": partition })
        };
        let command = doc! { "find": MAIN, "filter": &spec.filter, "batchSize": BATCH };
        let mut read = self.read(spec, command, ExpectedReply::Batches { collection: MAIN.to_owned() });
        read.sent.complete = false;
        read
    }

    /// Reads a renamed collection by one of its names.
    fn renamed(&self, random: &mut SplitMix) -> Read {
        let number = random.below(RENAMED_COLLECTIONS.into()) as u32;
        let location = if random.below(2) == 0 { Location::Original(number) } else { Location::Temporary(number) };
        let id = self.model.layout.renamed(number);
        let spec = ReadSpec { kind: OperationKind::FindMoved, ..read_spec(location, Scope::Ids(vec![id]), doc! {}) };
        if random.below(3) == 0 {
            let command = doc! { "count": &collection(location) };
            return self.read(spec, command, ExpectedReply::Count);
        }
        self.find(spec)
    }

    /// Returns the documents of a group, by equality or by `$expr`.
    fn group(&self, random: &mut SplitMix, kind: OperationKind) -> ReadSpec {
        let (range, partition) = self.partition(random);
        let group = partition * GROUPS as i32 + random.below(GROUPS.into()) as i32;
        let condition = Condition::Groups(group..=group);
        let filter = match random.below(4) {
            0 => doc! { "$expr": &doc! { "$eq": &array!["$g", group] } },
            _ => doc! { "g": group },
        };
        ReadSpec { kind, condition, ..read_spec(Location::Main, Scope::Range(range), filter) }
    }

    /// Returns documents by a range or by two conditions.
    fn condition(&self, random: &mut SplitMix, kind: OperationKind) -> ReadSpec {
        let (range, partition) = self.partition(random);
        let (condition, keys_change, filter) = match random.below(4) {
            0 => {
                let first = partition * GROUPS as i32 + random.below(GROUPS.into()) as i32;
                let last = (first + 2).min((partition + 1) * GROUPS as i32 - 1);
                (Condition::Groups(first..=last), true, doc! { "g": &doc! { "$gte": first, "$lte": last } })
            }
            1 => {
                let number = random.below(TEXTS.into()) as u32;
                (Condition::Text(number), false, doc! { "t": partition, "s": &text(number) })
            }
            2 => {
                // The ranges are open, so the suffix of the text is the selective condition.
                let number = random.below(TEXTS.into()) as u32;
                let end = &format!("xt {number:02}$");
                let last = ((range.end - 1) / BLOCK) as i32;
                let (from, to) = (doc! { "$gte": partition }, doc! { "$lte": last });
                (Condition::Text(number), true, doc! { "t": &from, "b": &to, "s": &doc! { "$regex": end.as_str() } })
            }
            _ => {
                let from = (NUMBERS / 4 * (1 + random.below(3) as u32)) as i32;
                let filter = doc! { "t": partition, "n": &doc! { "$gte": from } };
                (Condition::NumberFrom(from), true, filter)
            }
        };
        ReadSpec { kind, condition, keys_change, ..read_spec(Location::Main, Scope::Range(range), filter) }
    }

    fn find(&self, spec: ReadSpec) -> Read {
        let collection = collection(spec.location);
        let command = doc! { "find": &collection, "filter": &spec.filter };
        self.read(spec, command, ExpectedReply::Documents(ALL_FIELDS))
    }

    fn read(&self, spec: ReadSpec, command: DocBuf, expected: ExpectedReply) -> Read {
        Read { kind: spec.kind, command, sent: self.sent(&spec), expected }
    }

    /// Records the versions that are acknowledged now.
    fn sent(&self, spec: &ReadSpec) -> SentRead {
        SentRead {
            location: spec.location,
            oldest: spec.scope.ids().map(|id| self.model.oldest_visible(id, self.source)).collect(),
            scope: spec.scope.clone(),
            condition: spec.condition.clone(),
            order: Order::None,
            limit: usize::MAX,
            complete: true,
            keys_change: spec.keys_change,
        }
    }

    /// Returns a partition: a frequent one, a recently written one, or any.
    fn partition(&self, random: &mut SplitMix) -> (Range<Id>, i32) {
        let number = self.pick(random) / PARTITION;
        (self.model.layout.partition(number), number as i32)
    }

    /// Returns a document of the main collection.
    pub fn pick(&self, random: &mut SplitMix) -> Id {
        let main = self.model.layout.main;
        let recent = self.model.recent(random.next());
        match random.below(4) {
            0 if recent < main => recent,
            0 | 1 => random.below((main / 16).into()) as Id,
            _ => random.below(main.into()) as Id,
        }
    }

    /// Returns a document of either collection.
    fn pick_any(&self, random: &mut SplitMix) -> Id {
        let side = self.model.layout.side();
        match random.below(8) {
            0 => side.start + random.below((side.end - side.start).into()) as Id,
            _ => self.pick(random),
        }
    }
}

/// Documents per batch of a cursor that is iterated.
pub const BATCH: i32 = 10;

fn read_spec(location: Location, scope: Scope, filter: DocBuf) -> ReadSpec {
    ReadSpec { kind: OperationKind::FindId, location, scope, condition: Condition::Any, keys_change: false, filter }
}

fn aggregate(collection: &str, pipeline: &ValueBuf) -> DocBuf {
    doc! { "aggregate": collection, "pipeline": pipeline, "cursor": &doc! {} }
}

pub fn numbers(ids: &[Id]) -> ValueBuf {
    let mut bytes = Vec::new();
    let mut writer = ArrayWriter::begin(&mut bytes);
    ids.iter().for_each(|id| writer.push(*id as i32));
    drop(writer);
    Value::Array(Doc::from_bytes(&bytes).unwrap_or(Doc::EMPTY)).to_owned()
}

/// Returns whether the document exists at its current version.
pub fn exists(model: &Model, id: Id) -> bool {
    visible_version(model.layout.location(id), id, model.current(id)).is_some()
}
