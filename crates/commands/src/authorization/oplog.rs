//! What the entries of `applyOps` require.

use super::asked::{Asked, Grants, values};
use auth::{Action, ActionSet, Resource};
use document::{Doc, Value};

/// Decides about a command that an entry contains.
pub type Nested<'n> = &'n dyn Fn(&Asked<'_>, &mut dyn Grants) -> bool;

/// Returns whether a user may have the entries of an `applyOps` executed.
pub fn are_entries_allowed(asked: &Asked<'_>, grants: &mut dyn Grants, nested: Nested<'_>) -> bool {
    let entries = || asked.first.value().as_array().into_iter().flat_map(|entries| entries.values());
    let entries = || entries().filter_map(Value::as_document);
    grants.allow(Resource::Cluster, &ActionSet::of(&[Action::ApplyOps]))
        // A list without entries makes no sense, so only the most powerful users may send it.
        && (entries().next().is_some() || grants.allow(Resource::Any, &ActionSet::ANY))
        && entries().all(|entry| is_entry_allowed(asked, entry, grants, nested))
        && asked.values("preCondition").filter_map(Value::as_array).flat_map(|conditions| conditions.values()).all(
            |condition| {
                let mut names = condition.as_document().into_iter().flat_map(|condition| values(condition, "ns"));
                names.all(|name| name.as_str().is_none_or(|name| grants.allow(named(name), &ActionSet::of(&[Action::Find]))))
            },
        )
}

fn is_entry_allowed(asked: &Asked<'_>, entry: Doc<'_>, grants: &mut dyn Grants, nested: Nested<'_>) -> bool {
    let uses_uuid =
        has_uuid(entry) || values(entry, "o").filter_map(Value::as_document).any(has_uuid) && is(entry, "c");
    if uses_uuid && !is_uuid_allowed(entry, grants) {
        return false;
    }
    if is(entry, "n") {
        return grants.allow(Resource::Cluster, &ActionSet::of(&[Action::AppendOplogNote]));
    }
    let bypasses = asked.is_set("bypassDocumentValidation");
    let bypass = ActionSet::of(if bypasses { &[Action::BypassDocumentValidation] } else { &[] });
    let mut names = values(entry, "ns").filter_map(Value::as_str);
    names.all(|name| {
        // Entries of other kinds are never executed.
        let mut allow = |actions: &[Action], more| grants.allow(named(name), &ActionSet::of(actions).union(more));
        values(entry, "op").all(|op| match op {
            Value::String("i") => allow(&[Action::Insert], bypass),
            // Updates of entries are upserts.
            Value::String("u") => allow(&[Action::Update, Action::Insert], bypass),
            Value::String("d") => allow(&[Action::Remove], ActionSet::EMPTY),
            _ => true,
        })
    }) && (!is(entry, "c") || is_command_allowed(asked, entry, grants, nested))
}

/// Returns whether the entry has this kind.
fn is(entry: Doc<'_>, kind: &str) -> bool {
    values(entry, "op").any(|op| op.as_str() == Some(kind))
}

/// An entry with a command requires what the command does.
fn is_command_allowed(asked: &Asked<'_>, entry: Doc<'_>, grants: &mut dyn Grants, nested: Nested<'_>) -> bool {
    let commands = || values(entry, "o").filter_map(Value::as_document);
    let mut names = values(entry, "ns").filter_map(Value::as_str);
    names.all(|name| {
        commands().all(|command| {
            let Some(first) = command.first() else { return true };
            let database = name.split('.').next().unwrap_or_default();
            let database = if first.key() == "renameCollection" { "admin" } else { database };
            let command = Asked { database, first, body: command, request: None, ..*asked };
            nested(&command, grants)
        })
    })
}

fn has_uuid(document: Doc<'_>) -> bool {
    document.values().any(|value| matches!(value, Value::Binary { subtype: 4, .. }))
}

/// Naming collections by UUID requires more, and creating them with one even more.
fn is_uuid_allowed(entry: Doc<'_>, grants: &mut dyn Grants) -> bool {
    let mut commands = values(entry, "o").filter_map(Value::as_document).filter_map(Doc::first);
    let creates = is(entry, "c") && commands.any(|command| command.key() == "create");
    let actions = ActionSet::of(if creates { &[Action::UseUuid, Action::ForceUuid] } else { &[Action::UseUuid] });
    grants.allow(Resource::Cluster, &actions)
}

/// Returns the resource that a full name of a collection names.
fn named(name: &str) -> Resource<'_> {
    match name.split_once('.') {
        Some((database, collection)) => Resource::Collection(database, collection),
        None => Resource::Database(name),
    }
}
