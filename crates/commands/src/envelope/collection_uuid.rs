//! `collectionUUID`: the collection that a command expects; another one may have its name by now.

use crate::arguments;
use crate::call::Call;
use crate::envelope::uuid;
use crate::table::spec::Access;
use document::{DocBuf, Element, Value};
use error::{Code, Error, Result};
use store::Namespace;

/// Takes the field from the command's own fields. Returns `None` if the command does not support it
/// or it is absent.
pub fn take(call: &mut Call<'_>) -> Result<Option<[u8; 16]>> {
    if !call.spec.parses_shared("collectionUUID") {
        return Ok(None);
    }
    let Some(position) = call.fields().position(|field| field.key() == "collectionUUID") else { return Ok(None) };
    match read(call.spec.fields_name(), call.envelope.fields[position]) {
        // An error in a field before it is reported first.
        Err(error) => Err(call.parse_own().err().unwrap_or(error)),
        Ok(expected) => {
            call.envelope.fields.remove(position);
            Ok(expected)
        }
    }
}

/// Reads the UUID; null counts as absent.
pub fn read(within: &str, field: Element<'_>) -> Result<Option<[u8; 16]>> {
    match arguments::is_absent(field) {
        true => Ok(None),
        false => uuid(within, field).map(Some),
    }
}

/// Fails with 361 if the collection has another UUID or does not exist. A write reports that for
/// each statement.
pub async fn compare(call: &mut Call<'_>, expected: [u8; 16]) -> Result<()> {
    let namespace = arguments::namespace(call.database(), call.first())?;
    match check(call, &namespace, expected).await {
        Err(error) if call.spec.access == Access::Write => {
            call.envelope.refusal = Some(error);
            Ok(())
        }
        checked => checked,
    }
}

/// Fails with 361 if the collection has another UUID or does not exist.
pub async fn check(call: &Call<'_>, namespace: &Namespace, expected: [u8; 16]) -> Result<()> {
    let info = call.worker.store.collection(namespace).await?;
    match info.is_some_and(|info| info.uuid == expected) {
        true => Ok(()),
        false => Err(mismatch(call, namespace, expected).await?),
    }
}

async fn mismatch(call: &Call<'_>, namespace: &Namespace, expected: [u8; 16]) -> Result<Error> {
    let all = call.worker.store.collections(&namespace.database).await?;
    let actual = all.into_iter().find(|collection| collection.uuid == expected).map(|collection| collection.name);
    let details = DocBuf::build(|writer| {
        writer.append("db", &*namespace.database);
        writer.append("collectionUUID", Value::Binary { subtype: 4, bytes: &expected });
        writer.append("expectedCollection", &*namespace.collection);
        match &actual {
            Some(name) => writer.append("actualCollection", &**name),
            None => writer.append("actualCollection", Value::Null),
        }
    });
    let error = Error::new(Code::COLLECTION_UUID_MISMATCH, "Collection UUID does not match that specified");
    Ok(error.with_details(details.into_vec()))
}
