//! The options of `$changeStream`.

use super::scope::{Scope, is_internal_database};
use super::token::ResumeToken;
use crate::arguments::is_absent;
use crate::arguments::options::is_set;
use document::{Doc, Value};
use error::{Code, Error, Result};
use store::{FeedPosition, Namespace};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FullDocument {
    Default,
    UpdateLookup,
    WhenAvailable,
    Required,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BeforeChange {
    Off,
    WhenAvailable,
    Required,
}

/// The place at which a stream begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    Now,
    Behind(ResumeToken),
    /// With the entry at this position.
    At(FeedPosition),
}

/// How a stream shows events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct View {
    pub full_document: FullDocument,
    pub before_change: BeforeChange,
    pub shows_expanded: bool,
}

#[derive(Clone, Debug)]
pub struct StreamOptions {
    pub view: View,
    pub start: Start,
    pub scope: Scope,
}

impl StreamOptions {
    /// Reads the options, whose types have been checked. Fails with 50865 or 40674 for several
    /// starts, 260 for a start behind an `invalidate`, 72 or 73 for a namespace without streams,
    /// and for a bad token.
    pub fn read(options: Doc<'_>, namespace: &Namespace, is_collection: bool) -> Result<StreamOptions> {
        let start = start(options)?;
        let view = View {
            full_document: match options.get("fullDocument").and_then(Value::as_str) {
                Some("updateLookup") => FullDocument::UpdateLookup,
                Some("whenAvailable") => FullDocument::WhenAvailable,
                Some("required") => FullDocument::Required,
                _ => FullDocument::Default,
            },
            before_change: match options.get("fullDocumentBeforeChange").and_then(Value::as_str) {
                Some("whenAvailable") => BeforeChange::WhenAvailable,
                Some("required") => BeforeChange::Required,
                _ => BeforeChange::Off,
            },
            shows_expanded: is_set(options, "showExpandedEvents"),
        };
        let scope = scope(is_set(options, "allChangesForCluster"), namespace, is_collection)?;
        Ok(StreamOptions { view, start, scope })
    }
}

fn start(options: Doc<'_>) -> Result<Start> {
    let given = |name: &str| options.element(name).filter(|option| !is_absent(*option)).map(|option| option.value());
    let token = |name: &str| given(name).and_then(Value::as_document).map(ResumeToken::read).transpose();
    let at = match given("startAtOperationTime") {
        Some(Value::Timestamp { time, increment }) => Some(FeedPosition { time, increment }),
        _ => None,
    };
    if given("resumeAfter").is_some() && given("startAfter").is_some() {
        let message = "Do not specify both 'resumeAfter' and 'startAfter' in a $changeStream stage";
        return Err(Error::new(Code(50865), message));
    }
    let resume = token("resumeAfter")?;
    if resume.is_some_and(|token| token.is_of_invalidate()) {
        let message =
            "Attempting to resume a change stream using 'resumeAfter' is not allowed from an invalidate notification";
        return Err(Error::new(Code::INVALID_RESUME_TOKEN, message));
    }
    match (resume.or(token("startAfter")?), at) {
        (Some(_), Some(_)) => {
            Err(Error::new(Code(40674), "Only one type of resume option is allowed, but multiple were found"))
        }
        (Some(token), None) => Ok(Start::Behind(token)),
        (None, Some(position)) => Ok(Start::At(position)),
        (None, None) => Ok(Start::Now),
    }
}

fn scope(is_cluster: bool, namespace: &Namespace, is_collection: bool) -> Result<Scope> {
    let database = &*namespace.database;
    let refuse = |code, message: String| Err(Error::new(code, message));
    if is_cluster {
        if database != "admin" || is_collection {
            let message = "A $changeStream with 'allChangesForCluster:true' may only be opened on the 'admin' database, \
                           and with no collection name; found ";
            return refuse(Code::INVALID_OPTIONS, format!("{message}{namespace}"));
        }
        return Ok(Scope::Cluster);
    }
    if is_internal_database(database) {
        let message = format!("$changeStream may not be opened on the internal {database} database");
        return refuse(Code::INVALID_NAMESPACE, message);
    }
    if !is_collection {
        return Ok(Scope::Database(database.into()));
    }
    if namespace.collection.starts_with("system.") {
        let message = format!("$changeStream may not be opened on the internal {namespace} collection");
        return refuse(Code::INVALID_NAMESPACE, message);
    }
    Ok(Scope::Collection(namespace.clone()))
}

/// Returns whether a `$fill` uses no values of other documents.
fn sets_values_only(fill: Value<'_>) -> bool {
    let output = fill.as_document().and_then(|fill| fill.get("output")?.as_document()).unwrap_or(Doc::EMPTY);
    output.values().all(|field| field.as_document().is_some_and(|field| field.get("method").is_none()))
}

/// Fails with 20 for a stage that may not follow `$changeStream`.
pub fn check_stages(stages: Doc<'_>) -> Result<()> {
    for stage in stages.values().filter_map(Value::as_document).filter_map(Doc::first) {
        let shown = match stage.key() {
            "$match" | "$project" | "$addFields" | "$set" | "$unset" | "$replaceRoot" | "$replaceWith" | "$redact" => {
                continue;
            }
            // MongoDB makes an `$addFields` of it.
            "$fill" if sets_values_only(stage.value()) => continue,
            // MongoDB names the stage that it makes of it.
            "$count" | "$sortByCount" | "$bucket" => "$group",
            "$densify" | "$fill" => "$sort",
            "$setWindowFields" => "$_internalSetWindowFields",
            other => other,
        };
        let message = format!("{shown} is not permitted in a $changeStream pipeline");
        return Err(Error::new(Code::ILLEGAL_OPERATION, message));
    }
    Ok(())
}
