//! `dbHash` and `filemd5`: MD5 digests of stored documents.

use crate::arguments::number_to_i64;
use crate::call::{Call, Disposition};
use crate::read::{ReadSpec, Reader};
use crate::reply::{NO_CODE, in_executor};
use document::{Doc, DocBuf, DocWriter, Value};
use error::{Code, Error, Result};
use md5::{Digest, Md5};
use query::{Predicate, Sort};
use store::{Namespace, Rules};

/// Source: <https://www.mongodb.com/docs/v6.0/reference/command/dbHash/>
pub async fn db_hash(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let began = std::time::Instant::now();
    if let Some(name) = call.first().value().as_str() {
        let message = format!("Invalid db name: {}.{name}", call.database());
        return Err(Error::new(Code::INVALID_NAMESPACE, message));
    }
    let mut selected = Vec::new();
    for field in call.fields() {
        match (field.key(), field.value()) {
            ("collections", Value::Array(names)) => {
                for name in names.values() {
                    let message = "collections entries have to be strings";
                    selected.push(name.as_str().ok_or_else(|| Error::new(NO_CODE, message))?);
                }
            }
            ("$_internalReadAtClusterTime", _) => {
                let message =
                    "The '$_internalReadAtClusterTime' option is only supported when testing commands are enabled";
                return Err(Error::new(Code::INVALID_OPTIONS, message));
            }
            _ => {}
        }
    }
    let mut collections = call.worker.store.collections(call.database()).await?;
    collections.retain(|collection| {
        let name = &*collection.name;
        name != server::profiling::COLLECTION && (selected.is_empty() || selected.contains(&name))
    });
    collections.sort_by(|a, b| a.name.cmp(&b.name));
    let mut whole = Md5::new();
    let mut hashes = Vec::with_capacity(collections.len());
    for collection in &collections {
        let namespace = Namespace::new(call.database(), &collection.name);
        let hash = collection_hash(call, &namespace).await?;
        whole.update(hash.as_bytes());
        hashes.push(hash);
    }
    reply.append("host", server::host::cached_name());
    {
        let mut named = reply.document("collections");
        collections.iter().zip(&hashes).for_each(|(collection, hash)| named.append(&collection.name, hash));
    }
    {
        let mut capped = reply.array("capped");
        for collection in &collections {
            if Rules::of(collection.options.as_doc())?.is_some_and(|rules| rules.cap.is_some()) {
                capped.push(&collection.name);
            }
        }
    }
    {
        let mut uuids = reply.document("uuids");
        for collection in &collections {
            uuids.append(&collection.name, Value::Binary { subtype: 4, bytes: &collection.uuid });
        }
    }
    reply.append("md5", &hexadecimal(whole));
    reply.append("timeMillis", began.elapsed().as_millis() as i32);
    Ok(Disposition::Reply)
}

/// Returns the digest of a collection's documents, in the order of their ids.
async fn collection_hash(call: &Call<'_>, namespace: &Namespace) -> Result<String> {
    let sort = Sort::parse(document::doc! { "_id": 1 }.as_doc(), &call.context())?;
    let mut digest = Md5::new();
    for_each_document(call, namespace, Predicate::everything(), sort, |document| {
        digest.update(document.as_bytes());
        Ok(())
    })
    .await?;
    Ok(hexadecimal(digest))
}

/// Checks the name of the file's collections.
pub fn parse_file_md5(call: &Call<'_>) -> Result<()> {
    root(call).map(drop)
}

fn root<'a>(call: &Call<'a>) -> Result<&'a str> {
    let given = call.fields().find(|field| field.key() == "root");
    match given.map_or(Some(""), |root| root.value().as_str()) {
        Some("") => Ok("fs"),
        Some(root) => Ok(root),
        None => Err(Error::new(Code::INVALID_NAMESPACE, "'root' must be of type String")),
    }
}

/// Computes the digest of a file that is stored in chunks, as GridFS does.
///
/// Source: <https://www.mongodb.com/docs/v6.0/reference/command/filemd5/>
pub async fn file_md5(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let root = root(call)?;
    if call.fields().any(|field| field.key() == "partialOk" && field.value().is_truthy()) {
        return Err(Error::new(Code::NOT_IMPLEMENTED, "partialOk is not supported by this server"));
    }
    let namespace = Namespace::new(call.database(), &format!("{root}.chunks"));
    let mut filter = DocBuf::new();
    filter.append("files_id", call.first().value());
    filter.append("n", &document::doc! { "$gte": 0 });
    let predicate = Predicate::parse(filter.as_doc(), &call.context())?;
    let sort = Sort::parse(document::doc! { "files_id": 1, "n": 1 }.as_doc(), &call.context())?;
    let (mut digest, mut next) = (Md5::new(), 0);
    let read = for_each_document(call, &namespace, predicate, sort, |chunk| {
        if chunk.get("n").and_then(number_to_i64) != Some(next) {
            return Err(Error::new(Code(10040), "chunks out of order"));
        }
        digest.update(chunk_data(chunk)?);
        next += 1;
        Ok(())
    });
    read.await.map_err(|error| in_executor(error, "Executor error during filemd5 command"))?;
    reply.append("numChunks", next as i32);
    reply.append("md5", &hexadecimal(digest));
    Ok(Disposition::Reply)
}

fn chunk_data<'a>(chunk: Doc<'a>) -> Result<&'a [u8]> {
    const WHAT: &str = "The element that calls binDataClean() must be type of BinData, but type of";
    match chunk.get("data") {
        Some(Value::Binary { bytes, .. }) => Ok(bytes),
        Some(other) => Err(Error::new(Code(50849), format!("{WHAT} {} found.", other.kind().alias()))),
        // The spelling is MongoDB's.
        None => Err(Error::new(Code(50848), format!("{WHAT} misisng found. Field name is required"))),
    }
}

async fn for_each_document(
    call: &Call<'_>,
    namespace: &Namespace,
    predicate: Predicate,
    sort: Sort,
    visit: impl FnMut(Doc<'_>) -> Result<()>,
) -> Result<()> {
    let budget = Some(crate::arguments::options::budget(call, None));
    let request = ReadSpec { predicate: Some(predicate), sort: Some(sort), budget, ..ReadSpec::default() };
    let mut reader = Reader::open(&*call.worker.store, namespace, request).await?;
    reader.for_each(call, visit).await
}

fn hexadecimal(digest: Md5) -> String {
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
