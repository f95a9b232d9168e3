//! Facts about SQL statements: what they read and write, and what they do to their session.
//!
//! A statement's text and the definitions of its tables become facts. The consequences (caching,
//! invalidation, routing) are the caller's decision.
//! Nothing here does I/O.
//!
//! In reading order: [`statement`] (what a statement does, by its [`tokens`] and the lists in
//! [`words`], parsed within the bounds of [`bounded_parse`]), [`write_effects`] (what else a write
//! changes, by the definitions of its tables), [`table_definition`] (which tables have rows that
//! statements alone change), [`session_settings`] (the settings that results depend on),
//! [`diagnostics`] (what a statement uses and resets of the counts and warnings of the one before).

mod bounded_parse;
pub mod diagnostics;
pub mod session_settings;
pub mod statement;
pub mod table_definition;
mod table_name;
mod tokens;
mod words;
pub mod write_effects;

pub use diagnostics::{DiagnosticsKept, DiagnosticsUse};
pub use session_settings::SessionSettings;
pub use statement::{ParseContext, StatementKind, classify};
pub use table_name::TableName;
pub use write_effects::{SessionEffect, TableDefinition, TableKind, WriteEffects};
