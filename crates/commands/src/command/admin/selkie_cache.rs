//! `selkieCache`: the statistics of the caches, why a command's reply is cached or not, and whether
//! a connection uses the caches.
//!
//! A command of Selkie's own: `{selkieCache: 1}`, `{selkieCache: 1, why: {find: "cars"}}`,
//! `{selkieCache: 1, use: false}`.

use crate::arguments;
use crate::arguments::unknown_field;
use crate::call::Call;
use crate::document_cache;
use cache::{NotCached, Statistics};
use document::DocWriter;
use error::Result;
use server::Server;
use server::document_cache::CachePolicy;

const WITHIN: &str = "selkieCache";

pub fn selkie_cache(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let mut why = None;
    for field in call.fields() {
        match field.key() {
            "why" => why = Some(arguments::document(WITHIN, field)?),
            "use" => call.session.set_caching(&call.worker.server, arguments::boolean(WITHIN, field)?),
            other => return Err(unknown_field(WITHIN, other)),
        }
    }
    if let Some(command) = why {
        let (cached, reason) = document_cache::reason::reason(call, command);
        let mut why = reply.document("why");
        why.append("cached", cached);
        why.append("reason", reason);
    }
    reply.append("uses", call.session.cache_policy.get() != CachePolicy::NONE);
    write_statistics(&call.worker.server, &mut reply.document("cache"));
    Ok(())
}

/// Writes the statistics of the document cache, and within it those of the other caches. Caches
/// that are off are left out.
pub fn write_statistics(server: &Server, writer: &mut DocWriter<'_>) {
    if let Some(cache) = &server.document_cache {
        write(&cache.cache.statistics(), writer);
        writer.append("bytesMax", cache.cache.settings().bytes as i64);
        if let Some(shared) = &cache.shared {
            let statistics = shared.statistics();
            let mut writer = writer.document("shared");
            for (name, count) in [
                ("hits", statistics.hits),
                ("misses", statistics.misses),
                ("outdated", statistics.outdated),
                ("stored", statistics.stored),
                ("errors", statistics.errors),
                ("skipped", statistics.skipped),
            ] {
                writer.append(name, count as i64);
            }
        }
    }
    if let Some(results) = &server.result_set_cache {
        write(&results(), &mut writer.document("results"));
    }
    if let Some(sql) = &server.sql_cache {
        write(&sql(), &mut writer.document("sql"));
    }
}

fn write(statistics: &Statistics, writer: &mut DocWriter<'_>) {
    for (name, count) in [
        ("hits", statistics.hits),
        ("misses", statistics.misses),
        ("waits", statistics.waits),
        ("staleHits", statistics.stale_hits),
        ("stored", statistics.stored),
        ("entries", statistics.entries),
        ("bytes", statistics.bytes),
        ("savedMicros", statistics.saved_us),
        ("changes", statistics.changes),
        ("entriesExamined", statistics.entries_examined),
        ("invalidationMicros", statistics.invalidation_us),
        ("invalidations", statistics.invalidations),
        ("evictions", statistics.evictions),
        ("expirations", statistics.expirations),
        ("replacements", statistics.replacements),
    ] {
        writer.append(name, count as i64);
    }
    let mut not_cached = writer.document("notCached");
    for (reason, count) in NotCached::ALL.into_iter().zip(statistics.not_cached) {
        not_cached.append(reason.name(), count as i64);
    }
}
