//! Events of commands about users and roles.

use crate::call::Call;
use document::{Doc, DocBuf, DocWriter, Value};
use error::Code;
use server::audit::kind;

/// Returns the kind of event of a command; `None` if it is not about users or roles.
pub(super) fn kind_of(command: &str) -> Option<&'static str> {
    const KINDS: [&str; 15] = [
        kind::CREATE_USER,
        kind::UPDATE_USER,
        kind::DROP_USER,
        kind::DROP_ALL_USERS_FROM_DATABASE,
        kind::GRANT_ROLES_TO_USER,
        kind::REVOKE_ROLES_FROM_USER,
        kind::CREATE_ROLE,
        kind::UPDATE_ROLE,
        kind::DROP_ROLE,
        kind::DROP_ALL_ROLES_FROM_DATABASE,
        kind::GRANT_ROLES_TO_ROLE,
        kind::REVOKE_ROLES_FROM_ROLE,
        kind::GRANT_PRIVILEGES_TO_ROLE,
        kind::REVOKE_PRIVILEGES_FROM_ROLE,
        kind::DIRECT_AUTH_MUTATION,
    ];
    // The commands have the names of the events.
    KINDS.into_iter().find(|kind| *kind == command)
}

/// Returns the parameters of a command's event.
pub(super) fn param(kind: &str, database: &str, body: Doc<'_>) -> DocBuf {
    let name = body.first().map(|first| first.value()).and_then(Value::as_str).unwrap_or_default();
    param_of(kind, (name, database), body.get("pwd").is_some(), body)
}

/// Records that a user or role was restored, replaced or dropped by a command about many of them.
/// `stored`: its document, or its name.
pub(crate) fn record(call: &Call<'_>, kind: &'static str, stored: Doc<'_>, result: Code) {
    let text = |key| stored.get(key).and_then(Value::as_str).unwrap_or_default();
    let name = stored.get("user").or(stored.get("role")).and_then(Value::as_str).unwrap_or_default();
    let param = || param_of(kind, (name, text("db")), stored.get("credentials").is_some(), stored);
    // Dispatch waits until the event is written.
    let _ = call.worker.server.audit.record(&call.session.audited(), kind, param, result);
}

/// Returns the parameters of an event, which never contain a password.
fn param_of(kind: &str, (name, database): (&str, &str), password_changed: bool, body: Doc<'_>) -> DocBuf {
    DocBuf::build(|writer| {
        match kind {
            kind::DROP_ALL_USERS_FROM_DATABASE | kind::DROP_ALL_ROLES_FROM_DATABASE => {}
            kind::CREATE_USER
            | kind::UPDATE_USER
            | kind::DROP_USER
            | kind::GRANT_ROLES_TO_USER
            | kind::REVOKE_ROLES_FROM_USER => writer.append("user", name),
            _ => writer.append("role", name),
        }
        writer.append("db", database);
        if kind == kind::UPDATE_USER {
            writer.append("passwordChanged", password_changed);
        }
        for field in ["customData", "privileges", "authenticationRestrictions"] {
            if let Some(value) = body.get(field) {
                writer.append(field, value);
            }
        }
        if let Some(roles) = body.get("roles").and_then(Value::as_array) {
            write_roles(roles, database, writer);
        }
    })
}

/// Appends names of roles, each with its database.
fn write_roles(roles: Doc<'_>, database: &str, writer: &mut DocWriter<'_>) {
    let mut names = writer.array("roles");
    for role in roles.values() {
        match role {
            Value::String(name) => {
                let mut written = names.document();
                written.append("role", name);
                written.append("db", database);
            }
            other => names.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::doc;

    #[test]
    fn passwords_are_not_among_the_parameters() {
        let roles = DocBuf::build(|writer| writer.array("r").push("read"));
        let roles = roles.as_doc().get("r").unwrap();
        let body = doc! { "updateUser": "joe", "pwd": "secret", "roles": roles, "$db": "shop" };
        let shown = param(kind::UPDATE_USER, "shop", body.as_doc());
        assert!(!String::from_utf8_lossy(shown.as_bytes()).contains("secret"));
        let shown = values::text::document(shown.as_doc()).to_string();
        assert_eq!(
            shown,
            r#"{ user: "joe", db: "shop", passwordChanged: true, roles: [ { role: "read", db: "shop" } ] }"#
        );
    }
}
