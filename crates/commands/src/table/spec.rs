//! What there is to know about a command, and what most commands of a kind have in common.

use super::fields::{self, Fields};
use crate::command;
use crate::dispatch::{Call, Disposition};
use crate::envelope::Phase;
use document::DocWriter;
use error::Result;
use futures_util::future::LocalBoxFuture;
use mongo_wire::Request;

/// How a command is carried out. A handler appends its fields to the reply; `ok: 1` is added behind them.
#[derive(Clone, Copy)]
pub enum Handler {
    /// Answers at once.
    Immediate(fn(&mut Call<'_>, &mut DocWriter<'_>) -> Result<()>),
    /// May wait, for the store or for something to happen.
    Waiting(WaitingHandler),
    /// As `Waiting`, but its commonest form can mostly be answered at once.
    Mostly(AtOnce, WaitingHandler),
}

/// A command's short way.
#[derive(Clone, Copy)]
pub struct AtOnce {
    /// Whether it is worth trying with this request.
    pub is_likely: fn(&Request) -> bool,
    /// Answers the command; or gives false, and the ordinary handler answers it as if this had not been tried.
    pub handler: fn(&Call<'_>, &mut DocWriter<'_>) -> Result<bool>,
}

pub type WaitingHandler =
    for<'a, 'b, 'c> fn(&'a mut Call<'b>, &'a mut DocWriter<'c>) -> LocalBoxFuture<'a, Result<Disposition>>;

/// How and when a command reads its own fields. Asked only when something is wrong.
#[derive(Clone, Copy)]
pub struct Reading {
    pub at: Phase,
    pub read: Read,
    /// Fields of all commands that it reads among its own.
    pub too: &'static [&'static str],
}

/// Reads a command's own fields, or those of them that are read first.
type Read = fn(&Call<'_>) -> Result<()>;

/// Of commands that MongoDB reads as a whole before it looks at most of what all commands share.
pub const fn as_a_whole(read: Read, too: &'static [&'static str]) -> Option<Reading> {
    Some(Reading { at: Phase::OwnFields, read, too })
}

/// Of commands whose collection is read first, to find out who may touch it.
pub const fn when_authorized(read: Read) -> Option<Reading> {
    Some(Reading { at: Phase::Authorization, read, too: &[] })
}

pub const fn when_running(read: Read, too: &'static [&'static str]) -> Option<Reading> {
    Some(Reading { at: Phase::Running, read, too })
}

/// What a command touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Neither documents nor the catalog.
    Nothing,
    Read,
    Write,
    /// The catalog or the server itself.
    Admin,
}

/// What dispatch and the documentation need to know about a command.
#[derive(Clone, Copy)]
pub struct Spec {
    pub name: &'static str,
    /// Other spellings that are answered, by old clients mostly.
    pub aliases: &'static [&'static str],
    pub handler: Handler,
    pub access: Access,
    /// Refused before login, once there are users.
    pub needs_authentication: bool,
    /// Only on the database `admin`.
    pub admin_database_only: bool,
    /// Whether a `writeConcern` beside it has a meaning.
    pub takes_write_concern: bool,
    /// Its reply may come from the document cache.
    pub cacheable: bool,
    pub in_transaction: bool,
    /// Whether it is part of a session, if one is named.
    pub in_session: bool,
    /// A driver may send it again with the same `txnNumber`.
    pub retryable: bool,
    /// What its own fields may be, where its handler does not look after that.
    pub own_fields: Option<Fields>,
    /// How its own fields are read, for what is wrong with them, where it matters when that is told.
    pub reads: Option<Reading>,
    pub help: &'static str,
}

pub const NOTHING: Spec = Spec {
    name: "",
    aliases: &[],
    handler: Handler::Immediate(command::ping::ping),
    access: Access::Nothing,
    needs_authentication: true,
    admin_database_only: false,
    takes_write_concern: false,
    cacheable: false,
    in_transaction: false,
    in_session: true,
    retryable: false,
    own_fields: None,
    reads: None,
    help: "",
};
pub const READ: Spec = Spec { access: Access::Read, cacheable: true, in_transaction: true, ..NOTHING };
pub const WRITE: Spec =
    Spec { access: Access::Write, takes_write_concern: true, in_transaction: true, retryable: true, ..NOTHING };
pub const CATALOG_READ: Spec = Spec { access: Access::Read, ..NOTHING };
pub const CATALOG_WRITE: Spec = Spec { access: Access::Admin, takes_write_concern: true, ..NOTHING };
pub const SERVER: Spec = Spec { access: Access::Admin, ..NOTHING };
/// Without a login, and yet with a session.
pub const IN_SESSION: Spec = Spec { needs_authentication: false, ..NOTHING };
/// No fields of its own, and any are told before what is wrong with the rest.
pub const WITHOUT_FIELDS: Spec =
    Spec { own_fields: Some(fields::NONE), reads: as_a_whole(fields::read_first, &[]), ..IN_SESSION };
pub const SERVER_WITHOUT_FIELDS: Spec = Spec { access: Access::Admin, needs_authentication: true, ..WITHOUT_FIELDS };
pub const HANDSHAKE: Spec = Spec { needs_authentication: false, in_session: false, ..NOTHING };

/// A command that is refused whatever it says: `handler` says how.
pub const fn refused(
    name: &'static str,
    handler: fn(&mut Call<'_>, &mut DocWriter<'_>) -> Result<()>,
    help: &'static str,
) -> Spec {
    Spec { name, handler: Handler::Immediate(handler), admin_database_only: true, help, ..SERVER }
}

/// The same, on any database.
pub const fn on_any_database(spec: Spec) -> Spec {
    Spec { admin_database_only: false, ..spec }
}

/// A command of replica sets.
pub const fn of_replica_set(name: &'static str) -> Spec {
    refused(name, command::refused::of_replica_sets, "Refused: there is no replication.")
}
