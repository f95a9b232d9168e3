//! The kinds of reads: a command, and what its answer is judged by.

use super::check::{Condition, Order, Reading, Scope};
use super::kind::Kind;
use super::layout::{BLOCK, GROUPS, Id, MAIN, NUMBERS, Place, RENAMED, SIDE, TERRITORY, TEXTS, shown, text};
use super::model::{Model, Source};
use super::observe::{PART, Shape, WHOLE};
use document::{ArrayWriter, Doc, DocBuf, Value, ValueBuf, array, doc};
use harness::random::SplitMix;
use std::ops::Range;

/// A read that is to be sent.
pub struct Read {
    pub kind: Kind,
    pub command: DocBuf,
    pub reading: Reading,
    pub answer: Answer,
}

/// What the reply consists of.
pub enum Answer {
    Documents(Shape),
    /// Some documents of several batches.
    Batches {
        collection: String,
    },
    Count,
    Distinct,
    Groups,
    /// Documents with an array of others, which are judged by a reading of their own.
    Joined(Box<Reading>),
}

/// The name that a collection is moved to and fro.
pub fn home(number: u32) -> String {
    format!("truth_moved_{number}")
}

pub fn away(number: u32) -> String {
    format!("truth_away_{number}")
}

pub fn collection(place: Place) -> String {
    match place {
        Place::Main => MAIN.to_owned(),
        Place::Side => SIDE.to_owned(),
        Place::Home(number) => home(number),
        Place::Away(number) => away(number),
    }
}

/// Chooses what to read.
pub struct Reader<'m> {
    pub model: &'m Model,
    pub source: Source,
}

/// How a scope is asked for.
struct Question {
    kind: Kind,
    place: Place,
    scope: Scope,
    condition: Condition,
    moving: bool,
    filter: DocBuf,
}

impl Reader<'_> {
    /// Any read, each kind as often as its weight says.
    pub fn any(&self, random: &mut SplitMix) -> Read {
        match random.below(100) {
            0..40 => self.by_id(self.pick_any(random)),
            40..48 => self.by_ids(random),
            48..58 => self.found(self.group(random, Kind::FindGroup)),
            58..62 => self.found(self.condition(random, Kind::FindRange)),
            62..66 => self.sorted(random),
            66..68 => self.sorted_by_id(random),
            68..74 => self.projected(random),
            74..80 => self.counted(random),
            80..84 => self.distinct(random),
            84..90 => self.grouped(random),
            90..93 => self.joined(random),
            93..95 => self.joined_back(random),
            95..98 => self.batches(random),
            _ => self.moved(random),
        }
    }

    pub fn by_id(&self, id: Id) -> Read {
        let place = self.model.layout.place(id);
        let filter = doc! { "_id": id as i32 };
        let question = Question { kind: Kind::FindId, ..asked(place, Scope::These(vec![id]), filter) };
        self.found(question)
    }

    fn by_ids(&self, random: &mut SplitMix) -> Read {
        let begin = self.pick(random) / BLOCK * BLOCK;
        let ids: Vec<Id> = (begin..begin + BLOCK).step_by(1 + random.below(3) as usize).collect();
        let filter = doc! { "_id": &doc! { "$in": &numbers(&ids) } };
        self.found(Question { kind: Kind::FindIds, ..asked(Place::Main, Scope::These(ids), filter) })
    }

    fn projected(&self, random: &mut SplitMix) -> Read {
        let question = match random.below(2) {
            0 => self.group(random, Kind::FindProjected),
            _ => {
                let id = self.pick(random);
                asked(Place::Main, Scope::These(vec![id]), doc! { "_id": id as i32 })
            }
        };
        let mut read = self.found(Question { kind: Kind::FindProjected, ..question });
        read.command.append("projection", &doc! { "v": 1i32, "s": 1i32, "g": 1i32 });
        Read { answer: Answer::Documents(PART), ..read }
    }

    fn sorted(&self, random: &mut SplitMix) -> Read {
        let limit = 1 + random.below(2) as i32 * 4;
        let (range, territory) = self.territory(random);
        let filter = doc! { "t": territory };
        let question =
            Question { kind: Kind::FindSorted, moving: true, ..asked(Place::Main, Scope::All(range), filter) };
        let mut read = self.found(question);
        read.command.append("sort", &doc! { "n": -1i32 });
        read.command.append("limit", limit);
        (read.reading.order, read.reading.limit) = (Order::Number, limit as usize);
        read
    }

    fn sorted_by_id(&self, random: &mut SplitMix) -> Read {
        let begin = self.pick(random) / BLOCK * BLOCK;
        // Further than so many documents it does not come, since few are gone at one time.
        let range = begin..self.model.layout.main.min(begin + TERRITORY);
        let filter = doc! { "_id": &doc! { "$gte": begin as i32, "$lt": range.end as i32 } };
        let mut read = self.found(Question { kind: Kind::FindSorted, ..asked(Place::Main, Scope::All(range), filter) });
        read.command.append("sort", &doc! { "_id": 1i32 });
        read.command.append("limit", 10i32);
        (read.reading.order, read.reading.limit) = (Order::Id, 10);
        read
    }

    fn counted(&self, random: &mut SplitMix) -> Read {
        let question = match random.below(3) {
            0 => self.condition(random, Kind::Count),
            _ => self.group(random, Kind::Count),
        };
        let command = doc! { "count": MAIN, "query": &question.filter };
        self.read(question, command, Answer::Count)
    }

    fn distinct(&self, random: &mut SplitMix) -> Read {
        let (range, territory) = self.territory(random);
        let question =
            Question { kind: Kind::Distinct, ..asked(Place::Main, Scope::All(range), doc! { "t": territory }) };
        let command = doc! { "distinct": MAIN, "key": "g", "query": &question.filter };
        self.read(question, command, Answer::Distinct)
    }

    fn grouped(&self, random: &mut SplitMix) -> Read {
        let question = match random.below(2) {
            0 => self.group(random, Kind::Group),
            _ => {
                let (range, territory) = self.territory(random);
                Question { kind: Kind::Group, ..asked(Place::Main, Scope::All(range), doc! { "t": territory }) }
            }
        };
        let group = doc! { "_id": "$g", "count": &doc! { "$sum": 1i32 }, "sum": &doc! { "$sum": "$n" } };
        let pipeline = array![&doc! { "$match": &question.filter }, &doc! { "$group": &group }];
        self.read(question, aggregate(MAIN, &pipeline), Answer::Groups)
    }

    /// Documents of the main collection with the one that belongs to them in the side collection.
    fn joined(&self, random: &mut SplitMix) -> Read {
        let id = self.pick(random);
        let side = self.model.layout.main + id / BLOCK;
        let inner = self.reading(&asked(Place::Side, Scope::These(vec![side]), doc! {}));
        let question = asked(Place::Main, Scope::These(vec![id]), doc! { "_id": id as i32 });
        let lookup = doc! { "from": SIDE, "localField": "j", "foreignField": "_id", "as": "joined" };
        self.lookup(question, MAIN, &lookup, inner)
    }

    /// A document of the side collection with its block of the main one.
    fn joined_back(&self, random: &mut SplitMix) -> Read {
        let block = self.pick(random) / BLOCK;
        let side = self.model.layout.main + block;
        let inner = self.reading(&asked(Place::Main, Scope::All(block * BLOCK..(block + 1) * BLOCK), doc! {}));
        let question = asked(Place::Side, Scope::These(vec![side]), doc! { "_id": side as i32 });
        let lookup = doc! { "from": MAIN, "localField": "_id", "foreignField": "j", "as": "joined" };
        self.lookup(question, SIDE, &lookup, inner)
    }

    fn lookup(&self, question: Question, collection: &str, lookup: &DocBuf, inner: Reading) -> Read {
        let pipeline = array![&doc! { "$match": &question.filter }, &doc! { "$lookup": lookup }];
        let question = Question { kind: Kind::Lookup, ..question };
        self.read(question, aggregate(collection, &pipeline), Answer::Joined(Box::new(inner)))
    }

    fn batches(&self, random: &mut SplitMix) -> Read {
        let (range, territory) = self.territory(random);
        let question =
            Question { kind: Kind::FindBatches, ..asked(Place::Main, Scope::All(range), doc! { "t": territory }) };
        let command = doc! { "find": MAIN, "filter": &question.filter, "batchSize": BATCH };
        let mut read = self.read(question, command, Answer::Batches { collection: MAIN.to_owned() });
        read.reading.whole = false;
        read
    }

    /// A collection that is renamed and dropped, by one of its names.
    fn moved(&self, random: &mut SplitMix) -> Read {
        let number = random.below(RENAMED.into()) as u32;
        let place = if random.below(2) == 0 { Place::Home(number) } else { Place::Away(number) };
        let id = self.model.layout.renamed(number);
        let question = Question { kind: Kind::FindMoved, ..asked(place, Scope::These(vec![id]), doc! {}) };
        if random.below(3) == 0 {
            let command = doc! { "count": &collection(place) };
            return self.read(question, command, Answer::Count);
        }
        self.found(question)
    }

    /// A group by equality, in either way to ask for it.
    fn group(&self, random: &mut SplitMix, kind: Kind) -> Question {
        let (range, territory) = self.territory(random);
        let group = territory * GROUPS as i32 + random.below(GROUPS.into()) as i32;
        let condition = Condition::Groups(group..=group);
        let filter = match random.below(4) {
            0 => doc! { "$expr": &doc! { "$eq": &array!["$g", group] } },
            _ => doc! { "g": group },
        };
        Question { kind, condition, ..asked(Place::Main, Scope::All(range), filter) }
    }

    /// Ranges, and two conditions.
    fn condition(&self, random: &mut SplitMix, kind: Kind) -> Question {
        let (range, territory) = self.territory(random);
        let (condition, moving, filter) = match random.below(4) {
            0 => {
                let first = territory * GROUPS as i32 + random.below(GROUPS.into()) as i32;
                let last = (first + 2).min((territory + 1) * GROUPS as i32 - 1);
                (Condition::Groups(first..=last), true, doc! { "g": &doc! { "$gte": first, "$lte": last } })
            }
            1 => {
                let number = random.below(TEXTS.into()) as u32;
                (Condition::Text(number), false, doc! { "t": territory, "s": &text(number) })
            }
            2 => {
                // The text's end is what tells most about it: the ranges are open.
                let number = random.below(TEXTS.into()) as u32;
                let end = &format!("xt {number:02}$");
                let last = ((range.end - 1) / BLOCK) as i32;
                let (from, to) = (doc! { "$gte": territory }, doc! { "$lte": last });
                (Condition::Text(number), true, doc! { "t": &from, "b": &to, "s": &doc! { "$regex": end.as_str() } })
            }
            _ => {
                let from = (NUMBERS / 4 * (1 + random.below(3) as u32)) as i32;
                let filter = doc! { "t": territory, "n": &doc! { "$gte": from } };
                (Condition::NumberFrom(from), true, filter)
            }
        };
        Question { kind, condition, moving, ..asked(Place::Main, Scope::All(range), filter) }
    }

    fn found(&self, question: Question) -> Read {
        let collection = collection(question.place);
        let command = doc! { "find": &collection, "filter": &question.filter };
        self.read(question, command, Answer::Documents(WHOLE))
    }

    fn read(&self, question: Question, command: DocBuf, answer: Answer) -> Read {
        Read { kind: question.kind, command, reading: self.reading(&question), answer }
    }

    /// Notes what has been acknowledged by now.
    fn reading(&self, question: &Question) -> Reading {
        Reading {
            place: question.place,
            lows: question.scope.ids().map(|id| self.model.low(id, self.source)).collect(),
            scope: question.scope.clone(),
            condition: question.condition.clone(),
            order: Order::None,
            limit: usize::MAX,
            whole: true,
            moving: question.moving,
        }
    }

    /// A territory: one of few, one that has just been written to, or any.
    fn territory(&self, random: &mut SplitMix) -> (Range<Id>, i32) {
        let number = self.pick(random) / TERRITORY;
        (self.model.layout.territory(number), number as i32)
    }

    /// A document of the main collection.
    pub fn pick(&self, random: &mut SplitMix) -> Id {
        let main = self.model.layout.main;
        let recent = self.model.recent(random.next());
        match random.below(4) {
            0 if recent < main => recent,
            0 | 1 => random.below((main / 16).into()) as Id,
            _ => random.below(main.into()) as Id,
        }
    }

    /// A document of either collection.
    fn pick_any(&self, random: &mut SplitMix) -> Id {
        let side = self.model.layout.side();
        match random.below(8) {
            0 => side.start + random.below((side.end - side.start).into()) as Id,
            _ => self.pick(random),
        }
    }
}

/// Documents per batch where a cursor is read through.
pub const BATCH: i32 = 10;

fn asked(place: Place, scope: Scope, filter: DocBuf) -> Question {
    Question { kind: Kind::FindId, place, scope, condition: Condition::Any, moving: false, filter }
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

/// Whether the document is there at this version, by its own collection.
pub fn exists(model: &Model, id: Id) -> bool {
    shown(model.layout.place(id), id, model.current(id)).is_some()
}
