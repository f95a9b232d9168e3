//! `applyOps`: executes entries of an oplog in order, as `mongorestore --oplogReplay` sends them.
//!
//! Each entry becomes the command with the same effect. Inserts and updates are upserts, so that an
//! oplog may be replayed over documents that already contain its changes.

use crate::arguments;
use crate::arguments::options;
use crate::call::{Call, Disposition};
use crate::command::catalog::collections::full_name;
use crate::dispatch::run_part;
use document::{Doc, DocBuf, DocWriter, Element, Value};
use error::{Code, Error, Result};
use store::Namespace;

/// The option that lets entries write documents which the collection's validator refuses.
const BYPASS: &str = "bypassDocumentValidation";

/// The updates of an array in a diff are written in a second pass, after its truncation.
const PASSES: usize = 2;

/// Errors that mean that the effect of a command already exists; they count as success.
const IS_DONE: [Code; 4] =
    [Code::NAMESPACE_NOT_FOUND, Code::INDEX_NOT_FOUND, Code::NAMESPACE_EXISTS, Code::INDEX_ALREADY_EXISTS];

pub async fn apply_ops(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let entries = entries(call)?;
    let (mut applied, mut results) = (0, Vec::new());
    for (place, entry) in entries.into_iter().enumerate() {
        // No-ops are not counted.
        if entry.get("op") == Some(Value::String("n")) {
            continue;
        }
        applied += 1;
        let outcome = apply(call, place, entry).await;
        results.push(outcome.is_ok());
        if let Err(error) = outcome {
            let details = DocBuf::build(|writer| write_results(applied, &results, writer));
            return Err(error.with_details(details.into_vec()));
        }
    }
    write_results(applied, &results, reply);
    Ok(Disposition::Reply)
}

fn write_results(applied: i32, results: &[bool], writer: &mut DocWriter<'_>) {
    writer.append("applied", applied);
    let mut array = writer.array("results");
    results.iter().for_each(|result| array.push(*result));
}

fn entries<'a>(call: &Call<'a>) -> Result<Vec<Doc<'a>>> {
    let first = call.first();
    let wrong = |element: Element<'_>, expected: &str| {
        let (name, found) = (element.key(), element.kind.alias());
        Error::type_mismatch(format!("Wrong type for '{name}'. Expected a {expected}, got a {found}."))
    };
    let entries = first.value().as_array().ok_or_else(|| wrong(first, "array"))?;
    entries.elements().map(|entry| entry.value().as_document().ok_or_else(|| wrong(entry, "object"))).collect()
}

/// Executes one entry.
async fn apply(call: &Call<'_>, place: usize, entry: Doc<'_>) -> Result<()> {
    const WITHIN: &str = "OplogEntryBase";
    let text = |name: &str| {
        let field = entry.element(name).ok_or_else(|| arguments::missing_field(WITHIN, name))?;
        arguments::string(WITHIN, field)
    };
    if entry.get("ns").is_none() {
        let message = format!("op does not contain required \"ns\" field: {place}");
        return Err(Error::new(Code::ILLEGAL_OPERATION, message));
    }
    let (op, name) = (text("op")?, text("ns")?);
    let field = entry.element("o").ok_or_else(|| arguments::missing_field(WITHIN, "o"))?;
    let object = arguments::document(WITHIN, field)?;
    let invalid = || Error::new(Code::INVALID_NAMESPACE, format!("Invalid namespace specified '{name}'"));
    let namespace = full_name(name).ok_or_else(invalid)?;
    match op {
        "i" => {
            check_exists(call, &namespace, entry).await?;
            let id = id_of(object, "insert", entry)?;
            run_part(call, &update(call, &namespace, id, Value::Document(object))).await
        }
        "u" => {
            check_exists(call, &namespace, entry).await?;
            let target = entry.get("o2").and_then(Value::as_document).unwrap_or(object);
            let id = id_of(target, "update", entry)?;
            for pass in 0..PASSES {
                if let Some(changes) = changes(object, pass)? {
                    run_part(call, &update(call, &namespace, id, Value::Document(changes.as_doc()))).await?;
                }
            }
            Ok(())
        }
        "d" => {
            let id = id_of(object, "delete", entry)?;
            let statement = DocBuf::build(|writer| {
                writer.document("q").append("_id", id);
                writer.append("limit", 1);
            });
            let command = DocBuf::build(|writer| {
                writer.append("delete", &*namespace.collection);
                writer.array("deletes").push(&statement);
                writer.append("$db", &*namespace.database);
            });
            run_part(call, &command).await
        }
        "c" => {
            let command = catalog_command(&namespace, object)?;
            match run_part(call, &command).await {
                Err(error) if IS_DONE.contains(&error.code()) => Ok(()),
                outcome => outcome,
            }
        }
        other => {
            Err(Error::bad_value(format!("Enumeration value '{other}' for field '{WITHIN}.op' is not a valid value.")))
        }
    }
}

/// Returns the command for an entry about the catalog. Fails with 2 for an unknown command, and 115
/// for index builds.
fn catalog_command(namespace: &Namespace, object: Doc<'_>) -> Result<DocBuf> {
    let name = object.first().map_or("", |first| first.key());
    match name {
        "create" | "drop" | "dropDatabase" | "renameCollection" | "collMod" | "dropIndexes" | "deleteIndexes"
        | "convertToCapped" | "applyOps" => {}
        "createIndexes" | "startIndexBuild" | "commitIndexBuild" | "abortIndexBuild" => {
            let message = format!("The {name} operation is not supported in applyOps mode");
            return Err(Error::new(Code::COMMAND_NOT_SUPPORTED, message));
        }
        _ => {
            let object = values::text::document(object);
            let message = format!("Unknown oplog entry command type: {name} Object field: {object}");
            return Err(Error::bad_value(message));
        }
    }
    let database = if name == "renameCollection" { "admin" } else { &*namespace.database };
    Ok(DocBuf::build(|writer| {
        object.elements().filter(|field| !field.key().starts_with('$')).for_each(|field| writer.append_element(field));
        writer.append("$db", database);
    }))
}

async fn check_exists(call: &Call<'_>, namespace: &Namespace, entry: Doc<'_>) -> Result<()> {
    if call.worker.store.collection(namespace).await?.is_some() {
        return Ok(());
    }
    let entry = values::text::document(entry);
    let message = format!("cannot apply insert or update operation on a non-existent namespace {namespace}: {entry}");
    Err(Error::new(Code::NAMESPACE_NOT_FOUND, message))
}

fn id_of<'a>(document: Doc<'a>, what: &str, entry: Doc<'_>) -> Result<Value<'a>> {
    document.get("_id").ok_or_else(|| {
        let entry = values::text::document(entry);
        Error::new(Code::NO_SUCH_KEY, format!("Failed to apply {what} due to missing _id: {{ oplogEntry: {entry} }}"))
    })
}

/// Returns the command that updates or inserts one document. Its collection's validator counts,
/// unless `applyOps` bypasses it, which needs a privilege.
fn update(call: &Call<'_>, namespace: &Namespace, id: Value<'_>, changes: Value<'_>) -> DocBuf {
    let statement = DocBuf::build(|writer| {
        writer.document("q").append("_id", id);
        writer.append("u", changes);
        writer.append("upsert", true);
    });
    DocBuf::build(|writer| {
        writer.append("update", &*namespace.collection);
        writer.array("updates").push(&statement);
        writer.append(BYPASS, options::is_set(call.request.body(), BYPASS));
        writer.append("$db", &*namespace.database);
    })
}

/// Returns the update of an entry in a pass; `None` if the pass has nothing to do.
fn changes(object: Doc<'_>, pass: usize) -> Result<Option<DocBuf>> {
    let Some(difference) = object.get("diff").and_then(Value::as_document).filter(|_| object.get("$v").is_some())
    else {
        let is_first = pass == 0;
        return Ok(is_first.then(|| {
            DocBuf::build(|writer| {
                object.elements().filter(|field| *field.key() != *"$v").for_each(|field| writer.append_element(field));
            })
        }));
    };
    let mut parts = Parts::default();
    parts.read(difference, "")?;
    let written = DocBuf::build(|writer| match pass {
        0 => {
            parts.sets.write("$set", writer);
            parts.unsets.write("$unset", writer);
        }
        _ => parts.cuts.write("$push", writer),
    });
    Ok((!written.as_doc().is_empty()).then_some(written))
}

/// The operands of an update operator, by path.
#[derive(Default)]
struct Operands(Vec<(String, DocBuf)>);

impl Operands {
    fn push(&mut self, path: String, value: Value<'_>) {
        self.0.push((path, document::doc! { "v": value }));
    }

    fn write(&self, operator: &str, writer: &mut DocWriter<'_>) {
        if self.0.is_empty() {
            return;
        }
        let mut operands = writer.document(operator);
        for (path, held) in &self.0 {
            operands.append(path, held.as_doc().get("v").unwrap_or(Value::Null));
        }
    }
}

/// A diff between two documents, as update operators.
#[derive(Default)]
struct Parts {
    sets: Operands,
    unsets: Operands,
    cuts: Operands,
}

impl Parts {
    fn read(&mut self, difference: Doc<'_>, within: &str) -> Result<()> {
        let is_array = difference.get("a").is_some();
        for field in difference.elements() {
            let inner = || field.value().as_document().ok_or_else(malformed);
            match (field.key(), is_array) {
                ("a", true) => {}
                ("l", true) => {
                    let slice = document::doc! { "$each": &document::array![], "$slice": field.value() };
                    self.cuts.push(within.to_owned(), Value::Document(slice.as_doc()));
                }
                ("u" | "i", false) => {
                    for changed in inner()?.elements() {
                        self.sets.push(path(within, changed.key())?, changed.value());
                    }
                }
                ("d", false) => {
                    for removed in inner()?.elements() {
                        self.unsets.push(path(within, removed.key())?, Value::Boolean(true));
                    }
                }
                (name, true) if name.starts_with('u') => {
                    self.sets.push(path(within, name.get(1..).unwrap_or_default())?, field.value());
                }
                (name, _) if name.starts_with('s') => {
                    self.read(inner()?, &path(within, name.get(1..).unwrap_or_default())?)?;
                }
                _ => return Err(malformed()),
            }
        }
        Ok(())
    }
}

fn malformed() -> Error {
    Error::new(Code(4770500), "cannot apply an update whose difference is not understood")
}

/// Returns the path of a field. Fails for a name that cannot be part of a path.
fn path(within: &str, name: &str) -> Result<String> {
    if name.is_empty() || name.contains('.') || name.starts_with('$') {
        let message = format!("applyOps cannot change the field '{name}', whose name is no part of a path");
        return Err(Error::new(Code::NOT_IMPLEMENTED, message));
    }
    Ok(if within.is_empty() { name.to_owned() } else { format!("{within}.{name}") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::doc;

    #[test]
    fn differences_become_operators() {
        let difference = doc! {
            "d": &doc! { "gone": false }, "u": &doc! { "x": 1 }, "i": &doc! { "y": 2 },
            "ssub": &doc! { "u": &doc! { "z": 3 }, "sdeep": &doc! { "d": &doc! { "w": false } } },
            "slist": &doc! { "a": true, "l": 5, "u0": 7, "s1": &doc! { "u": &doc! { "q": 4 } } },
        };
        let entry = doc! { "$v": 2, "diff": &difference };
        let set = doc! { "x": 1, "y": 2, "sub.z": 3, "list.0": 7, "list.1.q": 4 };
        let expected = doc! { "$set": &set, "$unset": &doc! { "gone": true, "sub.deep.w": true } };
        assert_eq!(changes(entry.as_doc(), 0).unwrap(), Some(expected));
        let cut = doc! { "$each": &document::array![], "$slice": 5 };
        assert_eq!(changes(entry.as_doc(), 1).unwrap(), Some(doc! { "$push": &doc! { "list": &cut } }));
        let modifiers = doc! { "$v": 1, "$set": &doc! { "x": 1 } };
        assert_eq!(changes(modifiers.as_doc(), 0).unwrap(), Some(doc! { "$set": &doc! { "x": 1 } }));
        assert_eq!(changes(modifiers.as_doc(), 1).unwrap(), None);
        let odd = doc! { "$v": 2, "diff": &doc! { "u": &doc! { "a.b": 1 } } };
        assert_eq!(changes(odd.as_doc(), 0).unwrap_err().code(), Code::NOT_IMPLEMENTED);
    }
}
