//! `convertToCapped` and `cloneCollectionAsCapped`: copy a collection's newest documents, as many
//! as fit, into a capped one.

use crate::arguments;
use crate::arguments::options;
use crate::arguments::options::as_count;
use crate::call::{Call, Disposition};
use crate::command::catalog::collections::plan_killed;
use crate::command::catalog::create::write_cap;
use crate::read::{Batch, ReadSpec, Reader};
use crate::views;
use bytes::Bytes;
use document::{Doc, DocBuf, DocWriter, Value};
use error::{Code, Error, Result};
use server::logical_session::uuid_text;
use store::rules::CLUSTERED_INDEX;
use store::{CollectionInfo, Namespace, Statements, WriteBatch};

/// The exclusive upper limit of a size: 1 PiB and one byte.
const CAPPED_BYTES_END: i64 = (1 << 50) + 1;

/// The number of documents copied at a time.
const BATCH_DOCUMENTS: u64 = 500;

pub async fn convert(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<Disposition> {
    if call.first().value().as_str().is_none() {
        let found = call.first().kind.alias();
        return Err(Error::new(Code::INVALID_NAMESPACE, format!("collection name has invalid type {found}")));
    }
    let namespace = options::strict_name(call.database(), call.first())?;
    let bytes = size(call)?;
    if store::sharding::is_sharded(&*call.worker.store, &namespace).await? {
        return Err(Error::new(Code::ILLEGAL_OPERATION, "You can't convertToCapped a sharded collection"));
    }
    let info = source(call, &namespace).await?;
    let temporary = format!("tmp.convertToCapped.{}", call.worker.new_object_id(call.now_ms));
    let temporary = Namespace::new(&namespace.database, &temporary);
    copy(call, &namespace, &temporary, capped(&info, bytes)).await?;
    call.worker.store.rename_collection(&temporary, &namespace, true).await?;
    let lost = plan_killed(format!("collection dropped. UUID {}", uuid_text(&info.uuid)));
    call.worker.server.cursors.invalidate_where(|owner| owner.namespace == namespace, &lost);
    Ok(Disposition::Reply)
}

pub async fn clone(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<Disposition> {
    if call.first().value().as_str().is_none() {
        return Err(Error::type_mismatch("'cloneCollectionAsCapped' must be of type String"));
    }
    let namespace = arguments::namespace_to_write(call.database(), call.first())?;
    let to = call.fields().find(|field| field.key() == "toCollection");
    let to = to.and_then(|field| field.value().as_str());
    let to = to.ok_or_else(|| Error::type_mismatch("'toCollection' must be of type String"))?;
    if to.is_empty() || to.contains('$') {
        return Err(Error::new(Code::INVALID_NAMESPACE, format!("Invalid target collection name: {to}")));
    }
    let bytes = size(call)?;
    let info = source(call, &namespace).await?;
    let target = Namespace::new(&namespace.database, to);
    arguments::check_writable(&target)?;
    if call.worker.store.collection(&target).await?.is_some() || views::definition(call, &target).await?.is_some() {
        let message = format!(
            "cloneCollectionAsCapped failed - destination collection {target} already exists. source collection: {namespace}"
        );
        return Err(Error::new(Code::NAMESPACE_EXISTS, message));
    }
    copy(call, &namespace, &target, capped(&info, bytes)).await?;
    Ok(Disposition::Reply)
}

fn size(call: &Call<'_>) -> Result<i64> {
    let size = call.fields().find(|field| field.key() == "size");
    let size = size.and_then(|field| arguments::number_to_i64(field.value())).filter(|size| *size != 0);
    match size {
        Some(..0) => Err(Error::bad_value("size has to be >= 0")),
        Some(CAPPED_BYTES_END..) => Err(Error::bad_value("size cannot exceed 1 PB")),
        Some(size) => Ok(size),
        None => Err(Error::new(crate::reply::NO_CODE, "invalid command spec")),
    }
}

async fn source(call: &Call<'_>, namespace: &Namespace) -> Result<CollectionInfo> {
    if let Some(info) = call.worker.store.collection(namespace).await? {
        return Ok(info);
    }
    views::refuse(call, namespace).await?;
    Err(Error::new(Code::NAMESPACE_NOT_FOUND, format!("source collection {namespace} does not exist")))
}

/// Returns the options of the capped copy: those of the collection and the cap. A capped collection
/// is never clustered.
fn capped(info: &CollectionInfo, bytes: i64) -> DocBuf {
    const OTHERWISE: [&str; 4] = ["capped", "size", CLUSTERED_INDEX, "expireAfterSeconds"];
    DocBuf::build(|writer| {
        write_cap(bytes, None, writer);
        let others = info.options.as_doc().elements().filter(|option| !OTHERWISE.contains(&option.key()));
        others.for_each(|option| writer.append_element(option));
    })
}

/// Creates the capped collection and fills it; drops it on an error.
async fn copy(call: &Call<'_>, from: &Namespace, to: &Namespace, options: DocBuf) -> Result<()> {
    let store = &call.worker.store;
    store.create_collection(to, options.as_doc()).await?;
    let copied = copy_documents(call, from, to).await;
    if copied.is_err() {
        // The first error is the one to report.
        drop(store.drop_collection(to).await);
    }
    copied
}

async fn copy_documents(call: &Call<'_>, from: &Namespace, to: &Namespace) -> Result<()> {
    let store = &*call.worker.store;
    let mut reader = Reader::open(store, from, ReadSpec::default()).await?;
    let mut bytes = Vec::new();
    while !reader.is_done() {
        bytes.clear();
        let mut writer = DocWriter::begin(&mut bytes);
        let mut batch = Batch::begin(&mut writer, "", as_count(BATCH_DOCUMENTS));
        reader.fill(call, &mut batch).await?;
        drop(batch);
        drop(writer);
        let batch = Doc::from_bytes(&bytes).and_then(|document| document.get("")).and_then(Value::as_array);
        let documents: Vec<Bytes> = batch
            .unwrap_or(Doc::EMPTY)
            .values()
            .filter_map(Value::as_document)
            .map(|document| Bytes::copy_from_slice(document.as_bytes()))
            .collect();
        if documents.is_empty() {
            continue;
        }
        let batch = WriteBatch {
            journal: call.envelope.durability.journal,
            bypass_validation: true,
            ..WriteBatch::new(to.clone(), Statements::Insert(documents))
        };
        store.write(batch).await?.statements.into_iter().try_for_each(|outcome| outcome.map(drop))?;
    }
    Ok(())
}
