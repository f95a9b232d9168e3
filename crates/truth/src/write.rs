//! The kinds of writes: each takes documents of one block, which its writer has claimed, to their
//! next version.

use super::decode::{self, ALL_FIELDS};
use super::kind::OperationKind;
use super::layout::{
    Id, LIFECYCLE_STEPS, Location, RENAMED_COLLECTIONS, Version, next_version_pipeline, visible_version,
};
use super::model::Model;
use super::read::{collection, exists, numbers, original_name, temporary_name};
use document::{ArrayWriter, Doc, DocBuf, Value, doc};
use harness::message::{DATABASE, Message};
use harness::random::SplitMix;

/// A write to send. The model has recorded that it has begun.
pub struct Write {
    pub kind: OperationKind,
    pub command: DocBuf,
    pub message: Message,
    /// Documents that it takes to their next version, all of one claimed block. If it is empty, no
    /// block is claimed.
    pub changed: Vec<Id>,
    pub expected: Expected,
}

/// The expected reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// The number of written documents (`n`), and whether one was upserted.
    Written {
        count: i32,
        upserted: bool,
    },
    /// `findAndModify` returns this document at this version, or null.
    Returned(Option<(Id, Version)>),
    Ok,
}

/// The transition of one document to its next version.
struct Transition<'m> {
    model: &'m Model,
    id: Id,
    now: Version,
    next: Version,
    collection: String,
}

/// Returns a random write to the block of this document, or `None` if another writer has claimed
/// it.
pub fn random_write(model: &Model, id: Id, random: &mut SplitMix) -> Option<Write> {
    if !model.claim(id) {
        return None;
    }
    let step = Transition::new(model, id);
    let write = match (exists(model, id), step.exists_after()) {
        (true, true) => step.change(random),
        (true, false) => step.delete(random),
        (false, _) => step.create(random),
    };
    write.changed.iter().for_each(|id| model.begin(*id));
    Some(write)
}

/// Returns the next step in the lifecycle of a renamed collection, or `None` if another writer has
/// claimed it.
pub fn lifecycle_write(model: &Model, random: &mut SplitMix) -> Option<Write> {
    let number = random.below(RENAMED_COLLECTIONS.into()) as u32;
    let id = model.layout.renamed(number);
    if !model.claim(id) {
        return None;
    }
    let step = Transition::new(model, id);
    let (original_name, temporary_name) =
        (format!("{DATABASE}.{}", original_name(number)), format!("{DATABASE}.{}", temporary_name(number)));
    let rename = |from: &String, to: &String| doc! { "renameCollection": from, "to": to };
    let write = match step.next % LIFECYCLE_STEPS {
        0 => step.insert(),
        1 => step.admin_write(rename(&original_name, &temporary_name)),
        2 => step.admin_write(rename(&temporary_name, &original_name)),
        3 => step.update(
            step.by_id(random),
            &doc! { "$set": &model.layout.changes(id, step.next) },
            OperationKind::Update,
        ),
        _ => {
            let drop = doc! { "drop": &step.collection };
            step.write(OperationKind::Move, drop, Expected::Ok)
        }
    };
    model.begin(id);
    Some(write)
}

impl<'m> Transition<'m> {
    fn new(model: &'m Model, id: Id) -> Transition<'m> {
        let now = model.current(id);
        Transition { model, id, now, next: now + 1, collection: collection(model.layout.location(id)) }
    }

    fn exists_after(&self) -> bool {
        visible_version(self.model.layout.location(self.id), self.id, self.next).is_some()
    }

    fn change(&self, random: &mut SplitMix) -> Write {
        let layout = &self.model.layout;
        let changes = layout.changes(self.id, self.next);
        let filter = self.by_id(random);
        match random.below(100) {
            0..35 => self.update(filter, &doc! { "$set": &changes }, OperationKind::Update),
            35..45 => self.update(filter, &self.increment(), OperationKind::Update),
            45..55 => self.update(filter, &self.whole(false), OperationKind::Update),
            55..63 => self.update(filter, &next_version_pipeline(), OperationKind::Update),
            63..75 => self.find_and_modify(filter, random),
            75..88 => {
                self.many(random).unwrap_or_else(|| self.update(filter, &self.increment(), OperationKind::Update))
            }
            _ => self.bulk(random),
        }
    }

    fn delete(&self, random: &mut SplitMix) -> Write {
        let filter = self.by_id(random);
        if random.below(3) == 0 {
            let command = doc! { "findAndModify": &self.collection, "query": &filter, "remove": true };
            return self.write(OperationKind::FindAndModify, command, Expected::Returned(Some((self.id, self.now))));
        }
        let filter = match random.below(2) {
            0 => doc! { "b": block_number(self.id), "_id": self.id as i32, "v": self.now as i32 },
            _ => filter,
        };
        let limit = random.below(2) as i32;
        let command = doc! { "delete": &self.collection, "deletes": &list([doc! { "q": &filter, "limit": limit }]) };
        self.write(OperationKind::Delete, command, Expected::Written { count: 1, upserted: false })
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
                self.write(OperationKind::FindAndModify, command, Expected::Returned(returned))
            }
            _ => self.insert(),
        }
    }

    fn insert(&self) -> Write {
        let command = doc! { "insert": &self.collection, "documents": &list([self.whole(true)]) };
        self.write(OperationKind::Insert, command, Expected::Written { count: 1, upserted: false })
    }

    fn upsert(&self, query: &DocBuf, update: &DocBuf) -> Write {
        let statement = doc! { "q": query, "u": update, "upsert": true };
        let command = doc! { "update": &self.collection, "updates": &list([statement]) };
        self.write(OperationKind::Upsert, command, Expected::Written { count: 1, upserted: true })
    }

    fn update<'u>(&self, query: DocBuf, update: impl Into<Value<'u>>, kind: OperationKind) -> Write {
        let statement = doc! { "q": &query, "u": update };
        let command = doc! { "update": &self.collection, "updates": &list([statement]) };
        self.write(kind, command, Expected::Written { count: 1, upserted: false })
    }

    fn find_and_modify(&self, query: DocBuf, random: &mut SplitMix) -> Write {
        let new = random.below(2) == 0;
        let update = if random.below(2) == 0 { self.increment() } else { self.whole(false) };
        let command = doc! { "findAndModify": &self.collection, "query": &query, "update": &update, "new": new };
        let version = if new { self.next } else { self.now };
        self.write(OperationKind::FindAndModify, command, Expected::Returned(Some((self.id, version))))
    }

    /// Returns one update of several documents of the block; `None` if one of them is to be
    /// deleted.
    fn many(&self, random: &mut SplitMix) -> Option<Write> {
        let together = random.below(3) == 0;
        let mut ids = self.model.layout.block(block_number(self.id) as u32).filter(|id| exists(self.model, *id));
        let ids: Vec<Id> = match together {
            true => ids.filter(|id| self.model.current(*id) == self.now).collect(),
            false => ids.by_ref().collect(),
        };
        if !ids.iter().all(|id| Transition::new(self.model, *id).exists_after()) {
            return None;
        }
        let block = self.model.layout.block(block_number(self.id) as u32);
        let query = match random.below(3) {
            _ if together => doc! { "b": block_number(self.id), "v": self.now as i32 },
            0 => doc! { "b": block_number(self.id) },
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
        Some(Write { changed: ids, ..self.write(OperationKind::UpdateMany, command, expected) })
    }

    /// Returns updates of several documents of the block, with a statement each.
    fn bulk(&self, random: &mut SplitMix) -> Write {
        let block = self.model.layout.block(block_number(self.id) as u32);
        let ids = block.filter(|id| exists(self.model, *id) && Transition::new(self.model, *id).exists_after());
        let ids: Vec<Id> = ids.filter(|id| *id == self.id || random.below(2) == 0).collect();
        let statements = ids.iter().map(|id| {
            let step = Transition::new(self.model, *id);
            let set = doc! { "$set": &self.model.layout.changes(*id, step.next) };
            doc! { "q": &doc! { "_id": *id as i32 }, "u": &set }
        });
        let command = doc! {
            "update": &self.collection, "updates": &list(statements), "ordered": random.below(2) == 0,
        };
        let expected = Expected::Written { count: ids.len() as i32, upserted: false };
        Write { changed: ids, ..self.write(OperationKind::Bulk, command, expected) }
    }

    /// Returns a filter by `_id`, or by `_id` and the current version.
    fn by_id(&self, random: &mut SplitMix) -> DocBuf {
        // A renamed collection contains the version that was written last.
        let location = self.model.layout.location(self.id);
        match visible_version(location, self.id, self.now) {
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

    fn write(&self, kind: OperationKind, command: DocBuf, expected: Expected) -> Write {
        let message = Message::command(command.clone());
        Write { kind, command, message, changed: vec![self.id], expected }
    }

    fn admin_write(&self, command: DocBuf) -> Write {
        let message = Message::command_on("admin", command.clone());
        Write { message, ..self.write(OperationKind::Move, command, Expected::Ok) }
    }
}

/// Returns a change to the main collection that changes no document: creates or drops an index, or
/// sets the validator.
pub fn definition(random: &mut SplitMix, index: &mut bool) -> Write {
    let main = collection(Location::Main);
    let (kind, command) = match random.below(3) {
        0 => {
            let level = if random.below(2) == 0 { "off" } else { "moderate" };
            let validator = doc! { "v": &doc! { "$gte": 0i32 } };
            (OperationKind::CollMod, doc! { "collMod": &main, "validator": &validator, "validationLevel": level })
        }
        _ if *index => (OperationKind::Index, doc! { "dropIndexes": &main, "index": INDEX }),
        _ => {
            let index = doc! { "key": &doc! { "s": 1i32, "n": 1i32 }, "name": INDEX };
            (OperationKind::Index, doc! { "createIndexes": &main, "indexes": &list([index]) })
        }
    };
    *index ^= kind == OperationKind::Index;
    let message = Message::command(command.clone());
    Write { kind, command, message, changed: Vec::new(), expected: Expected::Ok }
}

const INDEX: &str = "created and dropped";

impl Expected {
    /// Fails unless a reply with `ok: 1` is the expected one.
    pub fn check(&self, model: &Model, reply: Doc<'_>) -> Result<(), String> {
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
                    Some(Value::Document(value)) => Some(decode::document(&model.layout, value, ALL_FIELDS)?),
                    Some(Value::Null) | None => None,
                    Some(other) => return Err(format!("{other:?} is returned")),
                };
                let returned = returned.map(|one| (one.id, one.version));
                if returned == *expected { Ok(()) } else { Err(format!("{returned:?} is returned, not {expected:?}")) }
            }
        }
    }
}

fn block_number(id: Id) -> i32 {
    (id / super::layout::BLOCK) as i32
}

pub fn list(documents: impl IntoIterator<Item = DocBuf>) -> document::ValueBuf {
    let mut bytes = Vec::new();
    let mut writer = ArrayWriter::begin(&mut bytes);
    documents.into_iter().for_each(|one| writer.push(&one));
    drop(writer);
    Value::Array(Doc::from_bytes(&bytes).unwrap_or(Doc::EMPTY)).to_owned()
}
