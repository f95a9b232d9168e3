//! Facts about SQL statements: what they read and write, and what they do to their session.
//!
//! A statement's text and the definitions of its tables become facts. The consequences (caching,
//! invalidation, routing) are the caller's decision.
//! Nothing here does I/O.
//!
//! In reading order: [`scanner`] (tokens, as MariaDB's lexer finds them), [`canonical`] (the form
//! that statements with other literals share), [`class`](mod@class) (the facts about the statements
//! of a form, and a cache of them), [`statement`] (how they are found, by [`tokens`] and the lists
//! in [`words`], and by the parser within the bounds of [`bounded_parse`]), [`effects`] (changes by
//! a statement's text), [`facts`] (where it may be executed), [`write_effects`] (further changes
//! by the definitions of tables and routines), [`table_definition`] (which tables have rows that
//! statements alone change), [`session_settings`] (the settings that results depend on),
//! [`diagnostics`] (the counts and warnings of the statement before).

mod bounded_parse;
pub mod canonical;
pub mod class;
pub mod diagnostics;
pub mod effects;
mod explain;
pub mod facts;
mod hint;
mod routine_name;
mod sample;
pub mod scanner;
pub mod session_settings;
pub mod statement;
pub mod table_definition;
mod table_name;
pub mod tokens;
pub mod words;
pub mod write_effects;

pub use canonical::Canonicalizer;
pub use class::{Class, ClassCache, FORM_BYTES_MAX};
pub use diagnostics::{DiagnosticsKept, DiagnosticsUse};
pub use effects::{Effects, SessionEffect, Writes};
pub use facts::{Facts, PrimaryReason, SessionState, TransactionEffect};
pub use hint::{Hint, RouteHint};
pub use routine_name::{RoutineKind, RoutineName};
pub use scanner::{Charset, DoubleQuotes, Lexis};
pub use session_settings::SessionSettings;
pub use statement::{CacheSwitch, ParseContext, Statement, StatementKind};
pub use table_name::TableName;
pub use write_effects::{Access, Body, Definition, SchemaObject, TableDefinition, TableKind, WriteEffects};
