//! The types of a command's own fields, for commands that need no other check of them.

use crate::arguments;
use crate::call::Call;
use document::Element;
use error::Result;

/// A type, or several. Null counts as absent.
#[derive(Clone, Copy, Debug)]
pub enum FieldType {
    Any,
    Boolean,
    BooleanOrNumber,
    Document,
}

pub type Fields = &'static [(&'static str, FieldType)];

pub const NONE: Fields = &[];
/// A router's token for the recovery of a transaction is accepted, and not needed.
pub const END_TRANSACTION: Fields = &[("recoveryToken", FieldType::Document)];
pub const FEATURES: Fields = &[("oidReset", FieldType::Any)];
pub const DEFAULT_CONCERN: Fields = &[("inMemory", FieldType::Boolean)];
pub const NEW_DEFAULT_CONCERN: Fields =
    &[("defaultReadConcern", FieldType::Document), ("defaultWriteConcern", FieldType::Document)];
pub const CONNECTION_STATUS: Fields = &[("showPrivileges", FieldType::BooleanOrNumber)];
pub const ROLES_INFO: Fields = &[
    // It may also be a string that selects another form of the reply.
    ("showPrivileges", FieldType::Any),
    ("showBuiltinRoles", FieldType::BooleanOrNumber),
    ("showAuthenticationRestrictions", FieldType::BooleanOrNumber),
];
pub const USERS_INFO: Fields = &[
    ("showCredentials", FieldType::BooleanOrNumber),
    ("showPrivileges", FieldType::BooleanOrNumber),
    ("showCustomData", FieldType::BooleanOrNumber),
    ("showAuthenticationRestrictions", FieldType::BooleanOrNumber),
    ("filter", FieldType::Document),
];

/// Parses the own fields of a command by its table entry. Fails as [`check`] does.
pub fn parse_own(call: &Call<'_>) -> Result<()> {
    check(call.spec.name, call.spec.own_fields.unwrap_or(NONE), call.fields())
}

/// Checks fields by their names and types. Fails with 40415 for an unknown field, and 14 for
/// another type.
pub fn check<'a>(within: &str, known: Fields, fields: impl IntoIterator<Item = Element<'a>>) -> Result<()> {
    for field in fields {
        let Some((_, expected)) = known.iter().find(|(name, _)| *name == field.key()) else {
            return Err(arguments::unknown_field(within, field.key()));
        };
        match expected {
            _ if arguments::is_absent(field) => {}
            FieldType::Any => {}
            FieldType::Boolean => drop(arguments::boolean(within, field)?),
            FieldType::BooleanOrNumber => drop(arguments::boolean_or_number(within, field)?),
            FieldType::Document => drop(arguments::document(within, field)?),
        }
    }
    Ok(())
}
