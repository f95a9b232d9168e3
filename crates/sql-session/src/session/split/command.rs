//! Commands of a session, and their outcomes.

use super::carried::StateChange;
use super::route::Route;
use crate::login::error_packet;
use crate::reply_tracker::ReplyTracker;
use sql_classify::{Class, StatementKind, TransactionEffect};
use std::rc::Rc;

/// The place of the statement's id in a command and in the reply to COM_STMT_PREPARE: behind the
/// header and the first byte.
const ID_AT: std::ops::Range<usize> = 5..9;

/// What a command needs of the session's own connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The primary. It is sent again to another only if the first has certainly not executed it.
    Primary,
    /// Any server: it changes no data, and may be sent again. The session may have connected to a
    /// replica while there was no primary.
    Any,
}

/// What a statement does to the diagnostics of its connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiagnosticsEffect {
    /// It has SQL_CALC_FOUND_ROWS, which is looked for where sessions share connections.
    pub counts_rows: bool,
    /// It removes the warnings of earlier statements.
    pub resets_warnings: bool,
    /// It is SHOW WARNINGS or SHOW ERRORS, whose rows FOUND_ROWS() does not count.
    pub keeps_found_rows: bool,
}

/// A command that executes a statement.
pub struct Command<'p> {
    pub packet: &'p [u8],
    /// The prepared statement that it executes: the client's id, and the packet that prepares it.
    pub prepared: Option<(u32, Rc<[u8]>)>,
    /// What it does to the transaction of its session.
    pub effect: TransactionEffect,
    /// It may be executed again as a part of its transaction.
    pub is_repeatable: bool,
    /// It may change data or the session, so that its transaction is not the same without it.
    pub concerns_transaction: bool,
    /// What it does to the diagnostics of its connection.
    pub diagnostics: DiagnosticsEffect,
    /// It is a ROLLBACK, alone.
    pub abandons_transaction: bool,
    /// It is a COMMIT, alone, after which no transaction begins at once and the session goes on.
    pub commits_alone: bool,
    /// It may change data.
    pub may_write: bool,
}

impl<'p> Command<'p> {
    /// A command with the statement in its packet.
    pub fn text(packet: &'p [u8]) -> Command<'p> {
        let effect = TransactionEffect::default();
        Command {
            packet,
            prepared: None,
            effect,
            is_repeatable: false,
            concerns_transaction: true,
            diagnostics: DiagnosticsEffect::default(),
            abandons_transaction: false,
            commits_alone: false,
            may_write: true,
        }
    }

    /// A command that executes a prepared statement.
    pub fn prepared(packet: &'p [u8], id: u32, preparing: Rc<[u8]>) -> Command<'p> {
        Command { prepared: Some((id, preparing)), ..Command::text(packet) }
    }

    /// As the command, of a class, and with its change of the session's state.
    pub fn of(self, class: &Class, change: &StateChange) -> Command<'p> {
        let is_repeatable = *change == StateChange::None;
        let effect = class.facts().transaction;
        let is_rollback = effect.rolls_back && !effect.is_savepoint && !effect.chains;
        let statement = class.statement();
        let kind = &statement.kind;
        let is_transaction = matches!(kind, StatementKind::Transaction);
        let abandons_transaction = is_rollback && is_transaction;
        let is_commit = effect.commits && !effect.chains && !effect.is_savepoint && !effect.is_xa;
        let commits_alone = is_transaction && is_commit && self.prepared.is_none() && !names_release(self.packet);
        let is_setting = matches!(kind, StatementKind::Settings | StatementKind::NextTransaction);
        let may_write = !is_transaction && !is_setting && !is_read(class);
        let diagnostics = DiagnosticsEffect {
            counts_rows: false,
            resets_warnings: statement.resets_warnings(),
            keeps_found_rows: statement.kind == StatementKind::Show && statement.diagnostics_use.is_explicit(),
        };
        Command { effect, is_repeatable, abandons_transaction, commits_alone, may_write, diagnostics, ..self }
    }

    /// Returns whether it may end its transaction with its changes.
    pub fn may_commit(&self) -> bool {
        self.effect.commits || self.effect.commits_implicitly
    }
}

/// A statement, where it goes, and what it does to the session.
pub struct Routed {
    pub class: Rc<Class>,
    pub route: Route,
    /// How far a replica may be behind, if a comment says so.
    pub lag_max_seconds: Option<u64>,
    /// A comment asks for a server.
    pub has_hint: bool,
    pub change: StateChange,
}

/// Whether the session goes on after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Continues,
    Ends,
}

/// A command's reply on the session's own connection; none if the client has got another error.
pub struct AtHome {
    pub reply: Option<ReplyTracker>,
    pub next: Outcome,
}

impl AtHome {
    /// The client has got an error, and the session goes on.
    pub fn refused() -> AtHome {
        AtHome { reply: None, next: Outcome::Continues }
    }
}

/// Returns whether a statement may end its session (COMMIT RELEASE).
fn names_release(sql: &[u8]) -> bool {
    memchr::memmem::find(&sql.to_ascii_uppercase(), b"RELEASE").is_some()
}

/// Returns whether executing a statement twice does no harm.
pub fn is_read(class: &Class) -> bool {
    class.facts().primary.is_none()
        && matches!(class.statement().kind, StatementKind::PureSelect | StatementKind::Read | StatementKind::Show)
}

/// Encodes a command whose payload fits into one packet.
pub fn command(command: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = (payload.len() as u32 + 1).to_le_bytes()[..3].to_vec();
    packet.extend_from_slice(&[0, command]);
    packet.extend_from_slice(payload);
    packet
}

/// Names the statement of a command, or of the reply to COM_STMT_PREPARE, by another id.
pub fn set_statement(packet: &mut [u8], id: u32) {
    if let Some(place) = packet.get_mut(ID_AT) {
        place.copy_from_slice(&id.to_le_bytes());
    }
}

/// Encodes the error of a statement whose transaction was lost with its server: ER_LOCK_DEADLOCK,
/// by which applications know that they may begin the transaction again.
pub fn transaction_lost(reason: &str) -> Vec<u8> {
    error_packet(1, 1213, "40001", &format!("The transaction was rolled back: {reason}; try restarting transaction"))
}
