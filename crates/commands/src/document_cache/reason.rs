//! Why a command's reply is cached or not, for `selkieCache`.

use super::key;
use crate::call::Call;
use crate::envelope;
use document::{Doc, Element};

/// Returns whether the reply to a command is cached, and why.
pub fn reason(call: &Call<'_>, command: Doc<'_>) -> (bool, &'static str) {
    let Some(cache) = &call.worker.server.document_cache else {
        return (
            false,
            "there is no cache: the server was started without --cache, or with one that caches result sets only",
        );
    };
    let Some(first) = command.first() else { return (false, "there is no command") };
    let Some(spec) = call.table.named(first.key_bytes()) else {
        return (false, "there is no such command");
    };
    if !spec.cacheable {
        return (false, "commands of this name are not cached: find, count, distinct and aggregate are");
    }
    let Some(collection) = first.value().as_str() else { return (false, "it names no collection") };
    if let Some(reason) = key::never_cached(call.database(), collection) {
        return (false, reason);
    }
    if !cache.rules.allow(call.database(), collection) || !cache.rules.allow_command(spec.name) {
        return (false, "the rules exclude this collection or this command");
    }
    let fields: smallvec::SmallVec<[Element<'_>; 8]> = envelope::own_fields(command).collect();
    if key::is_volatile(&fields) {
        return (false, "its result depends on more than documents, or it writes");
    }
    if !call.session.cache_policy.get().replies {
        return (false, "this connection does not use the cache");
    }
    if cache.cache.is_follower_lost() {
        return (false, "external writes cannot be followed at the moment");
    }
    let mut key = Vec::new();
    key::write_parts(call.database(), first, &fields, &mut key);
    match cache.cache.explain(&key, call.steady_ms) {
        Ok(()) => (true, "the reply is cached"),
        Err(None) => (false, "it was not requested yet, or was invalidated, evicted or has expired"),
        Err(Some(reason)) => (false, reason.explanation()),
    }
}
