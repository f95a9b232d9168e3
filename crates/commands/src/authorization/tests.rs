//! Compares the decision with MongoDB's, as `tests/authorization/matrix.json` records it.

use super::asked::{Asked, Granted, Grants};
use super::decision::{USE_UUID, is_allowed};
use super::denial;
use crate::table::COMMANDS;
use auth::{Privilege, Privileges, Resource, RoleName, UserName, roles};
use document::json::json_to_bson;
use document::{Doc, DocBuf, Value};
use std::fmt::Write;

/// Cases that MongoDB refuses for another reason, before it asks for privileges.
const REFUSED_BEFORE: &[&str] = &[
    "aggregate with runtimeConstants",
    "$search",
    "$backupCursor",
    "explain on another database",
    "applyOps of createIndexes",
];

/// Commands that a `mongod` does not have.
const UNKNOWN_TO_MONGOD: &[&str] =
    &["enableSharding", "listShards", "selkieCache", "selkieMonitor", "selkieServer", "shardCollection"];

/// Messages of code 13 from other places.
const DURING_EXECUTION: &[&str] = &["Insufficient", "Unauthorized", "Not authorized to impersonate"];

struct User {
    name: Option<UserName>,
    roles: Vec<RoleName>,
    privileges: Privileges,
}

fn matrix() -> DocBuf {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/authorization/matrix.json");
    let mut bytes = Vec::new();
    json_to_bson(&std::fs::read(path).unwrap(), &mut bytes).unwrap();
    DocBuf::from_vec(bytes).unwrap()
}

fn documents<'a>(within: Doc<'a>, field: &str) -> Vec<Doc<'a>> {
    let array = within.get(field).and_then(Value::as_array).unwrap_or(Doc::EMPTY);
    array.values().map(|value| value.as_document().unwrap()).collect()
}

fn user(document: Doc<'_>) -> User {
    let names: Vec<RoleName> =
        documents(document, "roles").into_iter().map(|role| RoleName::from_document(role).unwrap()).collect();
    let own =
        documents(document, "privileges").into_iter().map(|privilege| Privilege::from_document(privilege).unwrap());
    let granted = roles::resolve(&names, |_| None).privileges;
    User {
        name: UserName::from_document(document),
        roles: names,
        privileges: Privileges::new(granted.into_iter().chain(own)),
    }
}

#[test]
fn decisions_agree_with_mongodb() {
    let matrix = matrix();
    let users: Vec<User> = documents(matrix.as_doc(), "users").into_iter().map(user).collect();
    let mut different = String::new();
    let mut compared = 0;
    for case in documents(matrix.as_doc(), "cases") {
        let text = |field: &str| case.get(field).and_then(Value::as_str).unwrap();
        let (name, database, denied) = (text("name"), text("database"), text("denied"));
        let messages = case.get("messages").and_then(Value::as_array).unwrap();
        let messages: Vec<&str> = messages.values().filter_map(Value::as_str).collect();
        let body = case.get("command").and_then(Value::as_document).unwrap();
        let first = body.first().unwrap();
        let Some(spec) = COMMANDS
            .named(first.key_bytes())
            .filter(|_| !REFUSED_BEFORE.contains(&name) && !UNKNOWN_TO_MONGOD.contains(&name))
        else {
            continue;
        };
        for (user, outcome) in users.iter().zip(denied.chars()) {
            let expected = outcome.to_digit(10).map(|index| messages[index as usize]);
            let asked = Asked {
                database,
                first,
                body,
                request: None,
                user: user.name.as_ref(),
                roles: &user.roles,
                state: None,
            };
            let mut grants = Granted(&user.privileges);
            let by_uuid = spec.takes_uuid && first.value().as_str().is_none();
            let asks_for_help = body.get("help").is_some();
            let admin_only = spec.admin_database_only && database != "admin";
            let error = if admin_only {
                Some(format!("{} may only be run against the admin database.", spec.name))
            } else if user.name.is_none() && spec.needs_authentication {
                Some(denial::needs_login(spec.name).message().to_owned())
            } else if asks_for_help {
                None
            } else {
                let allowed = match by_uuid {
                    true => grants.allow(Resource::Cluster, &USE_UUID),
                    false => is_allowed(&COMMANDS, &spec.authorization, &asked, &mut grants),
                };
                let redacted = || COMMANDS.redacted(spec, body).unwrap_or_else(|| body.to_owned());
                (!allowed).then(|| denial::not_authorized(database, redacted().as_doc()).message().to_owned())
            };
            compared += 1;
            if expected.is_some_and(|message| DURING_EXECUTION.iter().any(|start| message.starts_with(start))) {
                continue;
            }
            if error.as_deref() != expected {
                let user = user.name.as_ref().map(UserName::to_string);
                writeln!(different, "{name} on {database} as {user:?}:\n  {error:?}\n  expected {expected:?}").unwrap();
            }
        }
    }
    assert!(compared > 10_000, "{compared}");
    assert!(different.is_empty(), "{different}");
}

/// Returns whether the user `anna@admin`, without a privilege, may run an `aggregate`.
fn may_anna_run(stage: &DocBuf) -> bool {
    let pipeline = document::array![stage];
    let body = document::doc! { "aggregate": 1, "pipeline": &pipeline };
    let anna = UserName::new("anna", "admin");
    let asked = Asked {
        database: "admin",
        first: body.as_doc().first().unwrap(),
        body: body.as_doc(),
        request: None,
        user: Some(&anna),
        roles: &[],
        state: None,
    };
    let spec = COMMANDS.named(b"aggregate").unwrap();
    is_allowed(&COMMANDS, &spec.authorization, &asked, &mut Granted(&Privileges::new([])))
}

#[test]
fn users_may_list_their_own_sessions_only() {
    let stage =
        |users: document::ValueBuf| document::doc! { "$listLocalSessions": &document::doc! { "users": &users } };
    let named = |user: &str, db: &str| document::doc! { "user": user, "db": db };
    let own = named("anna", "admin");
    assert!(may_anna_run(&stage(document::array![])));
    assert!(may_anna_run(&stage(document::array![&own, &own])));
    assert!(!may_anna_run(&stage(document::array![&own, &named("ben", "admin")])));
    assert!(!may_anna_run(&stage(document::array![&named("anna", "shop")])));
    let twice = DocBuf::build(|writer| {
        writer.append("user", "anna");
        writer.append("user", "ben");
        writer.append("db", "admin");
    });
    assert!(!may_anna_run(&stage(document::array![&twice])));
}
