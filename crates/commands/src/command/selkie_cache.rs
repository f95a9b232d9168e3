//! `selkieCache`: the document cache's figures, why a command's answer is kept or not, and whether a connection uses the cache.
//!
//! A command of Selkie's own: `{selkieCache: 1}`, `{selkieCache: 1, why: {find: "cars"}}`, `{selkieCache: 1, use: false}`.

use crate::answers::{self, CachePolicy};
use crate::arguments::{self, unknown_field};
use crate::dispatch::Call;
use crate::server::Server;
use cache::{NotCached, Statistics};
use document::DocWriter;
use error::Result;

const WITHIN: &str = "selkieCache";

pub fn selkie_cache(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let mut why = None;
    for field in call.fields() {
        match field.key() {
            "why" => why = Some(arguments::document(WITHIN, field)?),
            "use" => call.session.use_caches(&call.worker.server, arguments::boolean(WITHIN, field)?),
            other => return Err(unknown_field(WITHIN, other)),
        }
    }
    if let Some(command) = why {
        let (kept, reason) = answers::reason(call, command);
        let mut why = reply.document("why");
        why.append("kept", kept == "yes");
        why.append("reason", reason);
    }
    reply.append("uses", call.session.uses.get() != CachePolicy::NONE);
    write_statistics(&call.worker.server, &mut reply.document("cache"));
    Ok(())
}

/// Writes what the caches have done so far: the document cache, and within it the result-set cache; what there is not, is left out.
pub fn write_statistics(server: &Server, writer: &mut DocWriter<'_>) {
    if let Some(answers) = &server.answers {
        write(&answers.cache.statistics(), writer);
        writer.append("bytesMax", answers.cache.settings().bytes as i64);
        if let Some(shared) = &answers.shared {
            let figures = shared.statistics();
            let mut writer = writer.document("shared");
            for (name, count) in [
                ("hits", figures.hits),
                ("misses", figures.misses),
                ("outdated", figures.outdated),
                ("stored", figures.stored),
                ("failed", figures.failed),
                ("skipped", figures.skipped),
            ] {
                writer.append(name, count as i64);
            }
        }
    }
    if let Some(results) = &server.results {
        write(&results(), &mut writer.document("results"));
    }
    if let Some(sql) = &server.sql {
        write(&sql(), &mut writer.document("sql"));
    }
}

fn write(figures: &Statistics, writer: &mut DocWriter<'_>) {
    let mut count = |name: &str, count: u64| writer.append(name, count as i64);
    count("hits", figures.hits);
    count("misses", figures.misses);
    count("waits", figures.waits);
    count("stale", figures.stale);
    count("stored", figures.stored);
    count("answers", figures.answers);
    count("bytes", figures.bytes);
    count("savedMicros", figures.saved_us);
    count("changes", figures.changes);
    count("changesMicros", figures.changes_us);
    count("examined", figures.examined);
    {
        let mut gone = writer.document("gone");
        for (name, count) in [
            ("changed", figures.invalidated),
            ("memory", figures.evicted),
            ("age", figures.expired),
            ("replaced", figures.replaced),
        ] {
            gone.append(name, count as i64);
        }
    }
    let mut refused = writer.document("notKept");
    for (why, count) in NotCached::ALL.into_iter().zip(figures.refused) {
        refused.append(why.name(), count as i64);
    }
}
