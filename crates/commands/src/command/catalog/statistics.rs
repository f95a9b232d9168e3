//! `collStats`, `dbStats`, `validate`: statistics of stored data.

use crate::arguments;
use crate::arguments::is_absent;
use crate::arguments::options::strict_name;
use crate::call::{Call, Disposition};
use crate::{time_series, views};
use document::{DocWriter, Value};
use error::{Code, Error, Result};
use server::host;
use store::explain::append_count;
use store::{Cap, CollectionStats, Namespace, Rules, Validation};

pub async fn coll_stats(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let namespace = strict_name(call.database(), call.first())?;
    let mut scale = 1;
    for field in call.fields() {
        match field.key() {
            "scale" if is_absent(field) => {}
            "scale" => scale = check_scale("collStats", field)?,
            "waitForLock" | "numericOnly" | "verbose" => drop(arguments::plain_boolean(field)?),
            // As with MongoDB, unknown fields are ignored.
            _ => {}
        }
    }
    let mut stats = call.worker.store.collection_stats(&namespace).await?;
    let mut stored = namespace.clone();
    if stats.is_none() {
        match time_series::find(call, &namespace).await? {
            Some(series) => stored = series.buckets,
            None => views::refuse(call, &namespace).await?,
        }
        stats = call.worker.store.collection_stats(&stored).await?;
    }
    if call.worker.store.sharding().is_some() {
        reply.append("sharded", store::sharding::is_sharded(&*call.worker.store, &namespace).await?);
    }
    reply.append("ns", &namespace.to_string());
    match stats {
        Some(mut stats) => {
            let info = call.worker.store.collection(&stored).await?;
            if info.as_ref().is_some_and(|info| time_series::is_of_buckets(info.options.as_doc())) {
                write_bucket_stats(&stored, &stats, scale, reply);
                stats.indexes.retain(|(name, _)| name != "_id_");
            }
            let rules = info.map(|info| Rules::of(info.options.as_doc())).transpose()?.flatten();
            write_storage_stats(&stats, rules.and_then(|rules| rules.cap), scale, reply);
        }
        None => {
            for key in ["size", "count", "numOrphanDocs", "storageSize", "totalSize", "nindexes", "totalIndexSize"] {
                reply.append(key, 0);
            }
            drop(reply.document("indexDetails"));
            drop(reply.document("indexSizes"));
            reply.append("scaleFactor", scale as i32);
        }
    }
    Ok(Disposition::Reply)
}

/// Writes the statistics that only time-series collections have.
fn write_bucket_stats(buckets: &Namespace, stats: &CollectionStats, scale: u64, writer: &mut DocWriter<'_>) {
    let mut series = writer.document("timeseries");
    series.append("bucketsNs", &buckets.to_string());
    append_count("bucketCount", stats.documents, &mut series);
    let average = stats.data_bytes.checked_div(stats.documents).unwrap_or_default();
    append_count("avgBucketSize", average / scale, &mut series);
}

fn check_scale(within: &str, field: document::Element<'_>) -> Result<u64> {
    let scale = arguments::integer(within, field)?;
    u64::try_from(scale.min(i32::MAX.into())).ok().filter(|scale| *scale > 0).ok_or_else(|| {
        Error::new(Code(51024), format!("BSON field 'scale' value must be >= 1, actual value '{scale}'"))
    })
}

/// Writes the statistics of a collection, with sizes divided by `scale`.
pub fn write_storage_stats(stats: &CollectionStats, cap: Option<Cap>, scale: u64, writer: &mut DocWriter<'_>) {
    let index_bytes: u64 = stats.indexes.iter().map(|(_, bytes)| bytes).sum();
    append_count("size", stats.data_bytes / scale, writer);
    append_count("count", stats.documents, writer);
    if let Some(average) = stats.data_bytes.checked_div(stats.documents) {
        append_count("avgObjSize", average, writer);
    }
    writer.append("numOrphanDocs", 0);
    append_count("storageSize", stats.storage_bytes / scale, writer);
    append_count("freeStorageSize", 0, writer);
    writer.append("capped", cap.is_some());
    if let Some(cap) = cap {
        append_count("max", cap.documents.unwrap_or(0), writer);
        append_count("maxSize", cap.bytes / scale, writer);
    }
    writer.append("nindexes", stats.indexes.len() as i32);
    {
        let mut details = writer.document("indexDetails");
        stats.indexes.iter().for_each(|(name, _)| drop(details.document(name)));
    }
    drop(writer.array("indexBuilds"));
    append_count("totalIndexSize", index_bytes / scale, writer);
    append_count("totalSize", (stats.storage_bytes + index_bytes) / scale, writer);
    {
        let mut sizes = writer.document("indexSizes");
        stats.indexes.iter().for_each(|(name, bytes)| append_count(name, bytes / scale, &mut sizes));
    }
    append_count("scaleFactor", scale, writer);
}

pub async fn db_stats(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    if let Some(name) = call.first().value().as_str() {
        let message = format!("Invalid db name: {}.{name}", call.database());
        return Err(Error::new(Code::INVALID_NAMESPACE, message));
    }
    let (mut scale, mut free) = (1.0, false);
    for field in call.fields() {
        match field.key() {
            _ if is_absent(field) => {}
            "scale" => {
                let failed = |message| Error::new(crate::reply::NO_CODE, message);
                let number = arguments::number_to_i64(field.value());
                let number = number.ok_or_else(|| failed("scale has to be a number > 0"))?;
                scale = f64::from(i32::try_from(number).unwrap_or(-1));
                if scale <= 0.0 {
                    return Err(failed("scale has to be > 0"));
                }
            }
            "freeStorage" => free = field.value().is_truthy(),
            _ => {}
        }
    }
    // The free space within a table is not known, and reported as none.
    let append_free = |name: &str, reply: &mut DocWriter<'_>| {
        if free {
            reply.append(name, 0.0);
        }
    };
    let stats = call.worker.store.database_stats(call.database()).await?;
    let average = if stats.documents == 0 { 0.0 } else { stats.data_bytes as f64 / stats.documents as f64 };
    reply.append("db", call.database());
    append_count("collections", stats.collections, reply);
    append_count("views", views::all(call, call.database()).await?.len() as u64, reply);
    append_count("objects", stats.documents, reply);
    reply.append("avgObjSize", average);
    reply.append("dataSize", stats.data_bytes as f64 / scale);
    reply.append("storageSize", stats.storage_bytes as f64 / scale);
    append_free("freeStorageSize", reply);
    append_count("indexes", stats.indexes, reply);
    reply.append("indexSize", stats.index_bytes as f64 / scale);
    append_free("indexFreeStorageSize", reply);
    reply.append("totalSize", (stats.storage_bytes + stats.index_bytes) as f64 / scale);
    append_free("totalFreeStorageSize", reply);
    reply.append("scaleFactor", scale);
    // The disk of a MariaDB server is not known.
    let parsed = call.worker.server.settings.parsed.as_doc();
    let folder = parsed.get("storage").and_then(Value::as_document).and_then(|storage| storage.get("dbPath")?.as_str());
    if let Some((used, total)) = folder.and_then(host::file_system_bytes) {
        reply.append("fsUsedSize", used as f64 / scale);
        reply.append("fsTotalSize", total as f64 / scale);
    }
    Ok(Disposition::Reply)
}

pub async fn validate(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let namespace = strict_name(call.database(), call.first())?;
    let set: Vec<&str> = call.fields().filter(|field| field.value().is_truthy()).map(|field| field.key()).collect();
    check_options(&set)?;
    let store = &*call.worker.store;
    let Some(mut stats) = store.collection_stats(&namespace).await? else {
        if views::definition(call, &namespace).await?.is_some() {
            return Err(Error::new(Code::COMMAND_NOT_SUPPORTED_ON_VIEW, "Cannot validate a view"));
        }
        let message = format!("Collection '{namespace}' does not exist to validate.");
        return Err(Error::new(Code::NAMESPACE_NOT_FOUND, message));
    };
    let info = store.collection(&namespace).await?;
    if info.is_some_and(|info| time_series::is_of_buckets(info.options.as_doc())) {
        stats.indexes.retain(|(name, _)| name != "_id_");
    }
    let Validation { findings, mut keys } = store.validate(&namespace).await?;
    keys.retain(|(name, _)| stats.indexes.iter().any(|(known, _)| known == name));
    let valid = findings.is_empty();
    if !valid && set.contains(&"repair") {
        return Err(Error::new(Code::NOT_IMPLEMENTED, "repair is not supported by this server"));
    }
    reply.append("ns", &namespace.to_string());
    if !set.contains(&"metadata") {
        append_count("nInvalidDocuments", findings.len() as u64, reply);
        append_count("nNonCompliantDocuments", 0, reply);
        append_count("nrecords", stats.documents, reply);
        reply.append("nIndexes", stats.indexes.len() as i32);
        if keys.len() == stats.indexes.len() {
            let mut per_index = reply.document("keysPerIndex");
            keys.iter().for_each(|(name, count)| append_count(name, *count, &mut per_index));
        }
        let mut details = reply.document("indexDetails");
        stats.indexes.iter().for_each(|(name, _)| details.document(name).append("valid", valid));
    }
    reply.append("valid", valid);
    reply.append("repaired", false);
    drop(reply.array("warnings"));
    {
        let mut errors = reply.array("errors");
        findings.iter().for_each(|finding| errors.push(finding));
    }
    for key in ["extraIndexEntries", "missingIndexEntries", "corruptRecords"] {
        drop(reply.array(key));
    }
    Ok(Disposition::Reply)
}

/// Fails for options that cannot be combined, of those that are on. Every validation is a full one.
fn check_options(set: &[&str]) -> Result<()> {
    const METADATA_EXCLUDES: [&str; 4] = ["background", "full", "enforceFastCount", "repair"];
    const PAIRS: [(&str, &str); 4] = [
        ("background", "full"),
        ("background", "enforceFastCount"),
        ("background", "repair"),
        ("enforceFastCount", "repair"),
    ];
    let message = match PAIRS.into_iter().find(|(one, other)| set.contains(one) && set.contains(other)) {
        Some((one, other)) => format!(
            "Running the validate command with both {{ {one}: true }} and {{ {other}: true }} is not supported."
        ),
        None if set.contains(&"metadata") && set.iter().any(|option| METADATA_EXCLUDES.contains(option)) => {
            "Running the validate command with { metadata: true } is not supported with any other options".to_owned()
        }
        None => return Ok(()),
    };
    Err(Error::new(Code::INVALID_OPTIONS, message))
}
