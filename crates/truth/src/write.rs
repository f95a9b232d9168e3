//! The kinds of writes: each takes documents of one block, which its writer has claimed, to their next version.

use super::kind::Kind;
use super::layout::{Id, Place, RENAMED, TURNS, Version, next_version_pipeline, shown};
use super::model::Model;
use super::observe::{self, WHOLE};
use super::read::{away, collection, exists, home, numbers};
use document::{ArrayWriter, Doc, DocBuf, Value, doc};
use harness::message::{DATABASE, Message};
use harness::random::SplitMix;

/// A write that is to be sent; the model knows that it has begun.
pub struct Write {
    pub kind: Kind,
    pub command: DocBuf,
    pub message: Message,
    /// Documents that go to their next version by it, all of one block, which is claimed. Without any, nothing is.
    pub changed: Vec<Id>,
    pub expected: Expected,
}

/// What the reply has to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// So many documents were written (`n`), and one of them was upserted or not.
    Written {
        count: i32,
        upserted: bool,
    },
    /// `findAndModify` gives this document at this version, or null.
    Returned(Option<(Id, Version)>),
    Ok,
}

/// One document on its way to the next version.
struct Step<'m> {
    model: &'m Model,
    id: Id,
    now: Version,
    next: Version,
    collection: String,
}

/// Any write to the block of this document, or `None` when another writer has it.
pub fn any(model: &Model, id: Id, random: &mut SplitMix) -> Option<Write> {
    if !model.claim(id) {
        return None;
    }
    let step = Step::new(model, id);
    let write = match (exists(model, id), step.exists_then()) {
        (true, true) => step.change(random),
        (true, false) => step.delete(random),
        (false, _) => step.create(random),
    };
    write.changed.iter().for_each(|id| model.begin(*id));
    Some(write)
}

/// The next turn of a collection that is renamed and dropped, or `None` when somebody else is about it.
pub fn moved(model: &Model, random: &mut SplitMix) -> Option<Write> {
    let number = random.below(RENAMED.into()) as u32;
    let id = model.layout.renamed(number);
    if !model.claim(id) {
        return None;
    }
    let step = Step::new(model, id);
    let (home, away) = (format!("{DATABASE}.{}", home(number)), format!("{DATABASE}.{}", away(number)));
    let rename = |from: &String, to: &String| doc! { "renameCollection": from, "to": to };
    let write = match step.next % TURNS {
        0 => step.insert(),
        1 => step.of_admin(rename(&home, &away)),
        2 => step.of_admin(rename(&away, &home)),
        3 => step.update(step.by_id(random), &doc! { "$set": &model.layout.changes(id, step.next) }, Kind::Update),
        _ => {
            let drop = doc! { "drop": &step.collection };
            step.write(Kind::Move, drop, Expected::Ok)
        }
    };
    model.begin(id);
    Some(write)
}

impl<'m> Step<'m> {
    fn new(model: &'m Model, id: Id) -> Step<'m> {
        let now = model.current(id);
        Step { model, id, now, next: now + 1, collection: collection(model.layout.place(id)) }
    }

    fn exists_then(&self) -> bool {
        shown(self.model.layout.place(self.id), self.id, self.next).is_some()
    }

    fn change(&self, random: &mut SplitMix) -> Write {
        let layout = &self.model.layout;
        let changes = layout.changes(self.id, self.next);
        let filter = self.by_id(random);
        match random.below(100) {
            0..35 => self.update(filter, &doc! { "$set": &changes }, Kind::Update),
            35..45 => self.update(filter, &self.increment(), Kind::Update),
            45..55 => self.update(filter, &self.whole(false), Kind::Update),
            55..63 => self.update(filter, &next_version_pipeline(), Kind::Update),
            63..75 => self.find_and_modify(filter, random),
            75..88 => self.many(random).unwrap_or_else(|| self.update(filter, &self.increment(), Kind::Update)),
            _ => self.bulk(random),
        }
    }

    fn delete(&self, random: &mut SplitMix) -> Write {
        let filter = self.by_id(random);
        if random.below(3) == 0 {
            let command = doc! { "findAndModify": &self.collection, "query": &filter, "remove": true };
            return self.write(Kind::FindAndModify, command, Expected::Returned(Some((self.id, self.now))));
        }
        let filter = match random.below(2) {
            0 => doc! { "b": layout_block(self.id), "_id": self.id as i32, "v": self.now as i32 },
            _ => filter,
        };
        let limit = random.below(2) as i32;
        let command = doc! { "delete": &self.collection, "deletes": &list([doc! { "q": &filter, "limit": limit }]) };
        self.write(Kind::Delete, command, Expected::Written { count: 1, upserted: false })
    }

    fn create(&self, random: &mut SplitMix) -> Write {
        let query = doc! { "_id": self.id as i32 };
        let set = doc! { "$set": &self.whole(false) };
        match random.below(4) {
            0 => self.upsert(&query, &self.whole(true)),
            1 => self.upsert(&query, &set),
            2 => {
                let new = random.below(2) == 0;
                let command = doc! {
                    "findAndModify": &self.collection, "query": &query, "update": &set, "upsert": true, "new": new,
                };
                let returned = new.then_some((self.id, self.next));
                self.write(Kind::FindAndModify, command, Expected::Returned(returned))
            }
            _ => self.insert(),
        }
    }

    fn insert(&self) -> Write {
        let command = doc! { "insert": &self.collection, "documents": &list([self.whole(true)]) };
        self.write(Kind::Insert, command, Expected::Written { count: 1, upserted: false })
    }

    fn upsert(&self, query: &DocBuf, update: &DocBuf) -> Write {
        let statement = doc! { "q": query, "u": update, "upsert": true };
        let command = doc! { "update": &self.collection, "updates": &list([statement]) };
        self.write(Kind::Upsert, command, Expected::Written { count: 1, upserted: true })
    }

    fn update<'u>(&self, query: DocBuf, update: impl Into<Value<'u>>, kind: Kind) -> Write {
        let statement = doc! { "q": &query, "u": update };
        let command = doc! { "update": &self.collection, "updates": &list([statement]) };
        self.write(kind, command, Expected::Written { count: 1, upserted: false })
    }

    fn find_and_modify(&self, query: DocBuf, random: &mut SplitMix) -> Write {
        let new = random.below(2) == 0;
        let update = if random.below(2) == 0 { self.increment() } else { self.whole(false) };
        let command = doc! { "findAndModify": &self.collection, "query": &query, "update": &update, "new": new };
        let version = if new { self.next } else { self.now };
        self.write(Kind::FindAndModify, command, Expected::Returned(Some((self.id, version))))
    }

    /// One update of several documents of the block, if none of them is to go.
    fn many(&self, random: &mut SplitMix) -> Option<Write> {
        let together = random.below(3) == 0;
        let mut ids = self.model.layout.block(layout_block(self.id) as u32).filter(|id| exists(self.model, *id));
        let ids: Vec<Id> = match together {
            true => ids.filter(|id| self.model.current(*id) == self.now).collect(),
            false => ids.by_ref().collect(),
        };
        if !ids.iter().all(|id| Step::new(self.model, *id).exists_then()) {
            return None;
        }
        let block = self.model.layout.block(layout_block(self.id) as u32);
        let query = match random.below(3) {
            _ if together => doc! { "b": layout_block(self.id), "v": self.now as i32 },
            0 => doc! { "b": layout_block(self.id) },
            1 => doc! { "_id": &doc! { "$gte": block.start as i32, "$lt": block.end as i32 } },
            _ => doc! { "_id": &doc! { "$in": &numbers(&ids) } },
        };
        let set = doc! { "$set": &self.model.layout.changes(self.id, self.next) };
        let pipeline = next_version_pipeline();
        let statement = match together {
            true => doc! { "q": &query, "u": &set, "multi": true },
            false => doc! { "q": &query, "u": &pipeline, "multi": true },
        };
        let command = doc! { "update": &self.collection, "updates": &list([statement]) };
        let expected = Expected::Written { count: ids.len() as i32, upserted: false };
        Some(Write { changed: ids, ..self.write(Kind::UpdateMany, command, expected) })
    }

    /// Several documents of the block, with a statement each.
    fn bulk(&self, random: &mut SplitMix) -> Write {
        let block = self.model.layout.block(layout_block(self.id) as u32);
        let ids = block.filter(|id| exists(self.model, *id) && Step::new(self.model, *id).exists_then());
        let ids: Vec<Id> = ids.filter(|id| *id == self.id || random.below(2) == 0).collect();
        let statements = ids.iter().map(|id| {
            let step = Step::new(self.model, *id);
            let set = doc! { "$set": &self.model.layout.changes(*id, step.next) };
            doc! { "q": &doc! { "_id": *id as i32 }, "u": &set }
        });
        let command = doc! {
            "update": &self.collection, "updates": &list(statements), "ordered": random.below(2) == 0,
        };
        let expected = Expected::Written { count: ids.len() as i32, upserted: false };
        Write { changed: ids, ..self.write(Kind::Bulk, command, expected) }
    }

    /// `_id` alone, or with the version that there is.
    fn by_id(&self, random: &mut SplitMix) -> DocBuf {
        // What is renamed shows the version that it was written at last.
        let place = self.model.layout.place(self.id);
        match shown(place, self.id, self.now) {
            Some(version) if random.below(2) == 0 => doc! { "_id": self.id as i32, "v": version as i32 },
            _ => doc! { "_id": self.id as i32 },
        }
    }

    fn increment(&self) -> DocBuf {
        let fields = self.model.layout.fields(self.id, self.next);
        let set = doc! { "g": fields.g, "n": fields.n, "s": &fields.s };
        doc! { "$inc": &doc! { "v": 1i32 }, "$set": &set }
    }

    fn whole(&self, with_id: bool) -> DocBuf {
        let layout = &self.model.layout;
        if with_id {
            return layout.document(self.id, self.next);
        }
        DocBuf::build(|writer| layout.append_rest(self.id, self.next, writer))
    }

    fn write(&self, kind: Kind, command: DocBuf, expected: Expected) -> Write {
        let message = Message::command(command.clone());
        Write { kind, command, message, changed: vec![self.id], expected }
    }

    fn of_admin(&self, command: DocBuf) -> Write {
        let message = Message::command_on("admin", command.clone());
        Write { message, ..self.write(Kind::Move, command, Expected::Ok) }
    }
}

/// A change to the main collection that changes no document: an index comes or goes, its validator is set.
pub fn definition(random: &mut SplitMix, index: &mut bool) -> Write {
    let main = collection(Place::Main);
    let (kind, command) = match random.below(3) {
        0 => {
            let level = if random.below(2) == 0 { "off" } else { "moderate" };
            let validator = doc! { "v": &doc! { "$gte": 0i32 } };
            (Kind::CollMod, doc! { "collMod": &main, "validator": &validator, "validationLevel": level })
        }
        _ if *index => (Kind::Index, doc! { "dropIndexes": &main, "index": INDEX }),
        _ => {
            let index = doc! { "key": &doc! { "s": 1i32, "n": 1i32 }, "name": INDEX };
            (Kind::Index, doc! { "createIndexes": &main, "indexes": &list([index]) })
        }
    };
    *index ^= kind == Kind::Index;
    let message = Message::command(command.clone());
    Write { kind, command, message, changed: Vec::new(), expected: Expected::Ok }
}

const INDEX: &str = "comes and goes";

impl Expected {
    /// Whether a reply that says `ok: 1` says this as well.
    pub fn judge(&self, model: &Model, reply: Doc<'_>) -> Result<(), String> {
        match self {
            Expected::Ok => Ok(()),
            Expected::Written { count, upserted } => {
                let right = reply.get("n").and_then(Value::to_i64) == Some((*count).into());
                if right && reply.get("upserted").is_some() == *upserted {
                    return Ok(());
                }
                Err(format!("{reply:?}, where {count} documents are written, upserted: {upserted}"))
            }
            Expected::Returned(expected) => {
                let returned = match reply.get("value") {
                    Some(Value::Document(value)) => Some(observe::document(&model.layout, value, WHOLE)?),
                    Some(Value::Null) | None => None,
                    Some(other) => return Err(format!("{other:?} is returned")),
                };
                let returned = returned.map(|one| (one.id, one.version));
                if returned == *expected { Ok(()) } else { Err(format!("{returned:?} is returned, not {expected:?}")) }
            }
        }
    }
}

fn layout_block(id: Id) -> i32 {
    (id / super::layout::BLOCK) as i32
}

pub fn list(documents: impl IntoIterator<Item = DocBuf>) -> document::ValueBuf {
    let mut bytes = Vec::new();
    let mut writer = ArrayWriter::begin(&mut bytes);
    documents.into_iter().for_each(|one| writer.push(&one));
    drop(writer);
    Value::Array(Doc::from_bytes(&bytes).unwrap_or(Doc::EMPTY)).to_owned()
}
