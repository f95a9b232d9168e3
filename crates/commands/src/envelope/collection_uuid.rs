//! `collectionUUID`: the collection that a command means, lest it be another one of the same name by now.

use crate::arguments;
use crate::dispatch::Call;
use crate::envelope::uuid;
use crate::table::Access;
use document::{DocBuf, Element, Value};
use error::{Code, Error, Result};
use store::Namespace;

/// The commands that take it, by the names of their arguments.
fn arguments_of(command: &str) -> Option<&'static str> {
    Some(match command {
        "find" => "FindCommandRequest",
        "aggregate" => "aggregate",
        "createIndexes" => "createIndexes",
        "dropIndexes" => "dropIndexes",
        "drop" => "drop",
        "collMod" => "collMod",
        "insert" => "insert",
        "update" => "update",
        "delete" => "delete",
        _ => return None,
    })
}

/// Takes it from the command's fields.
pub fn take(call: &mut Call<'_>) -> Result<Option<[u8; 16]>> {
    let Some(within) = arguments_of(call.spec.name) else { return Ok(None) };
    let Some(place) = call.fields().position(|field| field.key() == "collectionUUID") else { return Ok(None) };
    match read(within, call.envelope.fields[place]) {
        // What is wrong with the fields in front of it is told before.
        Err(error) => Err(call.read_own().err().unwrap_or(error)),
        Ok(wanted) => {
            call.envelope.fields.remove(place);
            Ok(wanted)
        }
    }
}

/// Null leaves it out.
pub fn read(within: &str, field: Element<'_>) -> Result<Option<[u8; 16]>> {
    match arguments::is_absent(field) {
        true => Ok(None),
        false => uuid(within, field).map(Some),
    }
}

/// Error 361 where the collection is another one, or none. What writes tells it of each statement.
pub async fn settle(call: &mut Call<'_>, wanted: [u8; 16]) -> Result<()> {
    let namespace = arguments::namespace(call.database(), call.first())?;
    match check(call, &namespace, wanted).await {
        Err(error) if call.spec.access == Access::Write => {
            call.envelope.refusal = Some(error);
            Ok(())
        }
        checked => checked,
    }
}

/// Error 361 where the collection is another one, or none.
pub async fn check(call: &Call<'_>, namespace: &Namespace, wanted: [u8; 16]) -> Result<()> {
    let info = call.worker.store.collection(namespace).await?;
    match info.is_some_and(|info| info.uuid == wanted) {
        true => Ok(()),
        false => Err(mismatch(call, namespace, wanted).await?),
    }
}

async fn mismatch(call: &Call<'_>, namespace: &Namespace, wanted: [u8; 16]) -> Result<Error> {
    let all = call.worker.store.collections(&namespace.database).await?;
    let actual = all.into_iter().find(|collection| collection.uuid == wanted).map(|collection| collection.name);
    let details = DocBuf::build(|writer| {
        writer.append("db", &*namespace.database);
        writer.append("collectionUUID", Value::Binary { subtype: 4, bytes: &wanted });
        writer.append("expectedCollection", &*namespace.collection);
        match &actual {
            Some(name) => writer.append("actualCollection", &**name),
            None => writer.append("actualCollection", Value::Null),
        }
    });
    let error = Error::new(Code::COLLECTION_UUID_MISMATCH, "Collection UUID does not match that specified");
    Ok(error.with_details(details.into_vec()))
}
