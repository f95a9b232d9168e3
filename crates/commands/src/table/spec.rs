//! The facts about a command, and the defaults that most commands of a kind share.

use super::fields::{self, Fields};
use crate::authorization::requirement::{Authorization, INTERNAL, on_collection};
use crate::call::{Call, Disposition};
use crate::envelope::first_error::Phase;
use auth::Action;
use document::{Doc, DocWriter};
use error::Result;
use futures_util::future::LocalBoxFuture;
use mongo_wire::Request;
use server::operation::OperationKind;
use server::usage::{LatencyKind, LockKind};
use server::{Topology, Worker};

/// On which servers a command exists. Others do not know it (59).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existence {
    Always,
    /// With the setting `test-commands`.
    ForTests,
    /// On a router whose store has shards.
    WithShards,
}

impl Existence {
    pub fn includes(self, worker: &Worker) -> bool {
        let settings = &worker.server.settings;
        match self {
            Existence::Always => true,
            Existence::ForTests => settings.test_commands,
            Existence::WithShards => settings.topology == Topology::Router && worker.store.sharding().is_some(),
        }
    }
}

/// A handler that never waits.
pub type ImmediateHandler = fn(&mut Call<'_>, &mut DocWriter<'_>) -> Result<()>;

/// A handler that may wait, for the store or for an event.
pub type WaitingHandler =
    for<'a, 'b, 'c> fn(&'a mut Call<'b>, &'a mut DocWriter<'c>) -> LocalBoxFuture<'a, Result<Disposition>>;

/// How a command is executed. A handler appends its fields to the reply; dispatch appends `ok: 1`.
#[derive(Clone, Copy)]
pub enum Handler {
    Immediate(ImmediateHandler),
    Waiting(WaitingHandler),
    /// As `Waiting`, with a fast path that never waits for the most frequent form of the command.
    WithFastPath(FastPath, WaitingHandler),
}

/// The fast path of a command.
#[derive(Clone, Copy)]
pub struct FastPath {
    /// Returns whether the request is likely to be answered by the fast path.
    pub is_likely: fn(&Request) -> bool,
    /// Answers the command, or returns false: then the ordinary handler must answer it, as if this
    /// had not run.
    pub handler: fn(&Call<'_>, &mut DocWriter<'_>) -> Result<bool>,
}

/// When a command parses its own fields, relative to the checks that all commands share. MongoDB
/// reports the first error in its own order, so the order of the checks is part of a command's
/// behavior.
#[derive(Clone, Copy)]
pub struct FieldParsing {
    pub phase: Phase,
    /// Parses the fields and drops the result. Called only when a request has an error, to find out
    /// which is the first: the handler must parse its fields again. Unlike this, `own_fields` is
    /// checked for every request.
    pub parse: fn(&Call<'_>) -> Result<()>,
    /// The fields of all commands that this command parses among its own.
    pub shared_fields: &'static [&'static str],
}

/// Commands that MongoDB parses as a whole before it checks most of what all commands share.
pub const fn parsed_first(parse: fn(&Call<'_>) -> Result<()>, shared: &'static [&'static str]) -> Option<FieldParsing> {
    Some(FieldParsing { phase: Phase::OwnFields, parse, shared_fields: shared })
}

/// Commands whose collection is parsed for the authorization.
pub const fn parsed_for_authorization(parse: fn(&Call<'_>) -> Result<()>) -> Option<FieldParsing> {
    Some(FieldParsing { phase: Phase::Authorization, parse, shared_fields: &[] })
}

/// Commands that parse their fields when they run.
pub const fn parsed_when_running(
    parse: fn(&Call<'_>) -> Result<()>,
    shared: &'static [&'static str],
) -> Option<FieldParsing> {
    Some(FieldParsing { phase: Phase::Running, parse, shared_fields: shared })
}

/// What a command touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Neither documents nor the catalog.
    Nothing,
    Read,
    Write,
    /// Changes the catalog or the server itself, or reports on the server as a whole, which only
    /// the primary does (`secondaryOk: false` in `listCommands`).
    Admin,
}

/// The read concern levels that a command supports beside `local`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadConcernLevels {
    LocalOnly,
    AllButSnapshot,
    SnapshotOnly,
    All,
}

impl ReadConcernLevels {
    pub fn supports(self, level: &str) -> bool {
        match self {
            ReadConcernLevels::LocalOnly => false,
            ReadConcernLevels::AllButSnapshot => level != "snapshot",
            ReadConcernLevels::SnapshotOnly => level == "snapshot",
            ReadConcernLevels::All => true,
        }
    }
}

/// Whether a command is part of version 1 of MongoDB's stable API (`apiStrict`).
///
/// Source: <https://www.mongodb.com/docs/v6.0/reference/stable-api/>
#[derive(Clone, Copy, Debug)]
pub enum StableApi {
    Excluded,
    /// Included, except for these fields.
    IncludedWithout(&'static [&'static str]),
}

impl StableApi {
    pub const INCLUDED: StableApi = StableApi::IncludedWithout(&[]);
}

/// How a command's `maxTimeMS` is checked before the check that all commands share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeLimitField {
    Shared,
    /// It must be a number.
    Number,
    /// It must be a number that is not negative.
    NonNegative,
}

/// The field with the collection that `top` counts a command for.
#[derive(Clone, Copy, Debug)]
pub enum CountedCollection {
    /// It is not counted for a collection.
    None,
    /// In the command's first field.
    First,
    Field(&'static str),
}

/// A field that MongoDB's servers send to one another along with a command. Clients may send it,
/// too: it must be well-formed, and must not ask for anything that a single server lacks.
#[derive(Clone, Copy, Debug)]
pub enum InternalField {
    /// One statement id for each statement of the named field.
    StatementIds(&'static str),
    /// Encrypted collections, which only replica sets have: the code of the refusal, or `None` for
    /// commands that read.
    Encryption(Option<i32>),
    /// Only valid on a collection of buckets.
    BucketsNamespace,
    /// A boolean, or null.
    OptionalBoolean,
    PlainBoolean,
    /// The values of `$$NOW` and the like.
    RuntimeConstants,
    /// The term of an election.
    Term,
    /// The distribution of a pipeline's documents to several readers.
    Exchange,
    /// A tenant, which is always refused.
    Tenant,
}

/// The facts that dispatch, the statistics and the documentation need to know about a command.
#[derive(Clone, Copy)]
pub struct Spec {
    pub name: &'static str,
    /// Other names that are accepted, mostly for old clients.
    pub aliases: &'static [&'static str],
    pub handler: Handler,
    pub access: Access,
    /// What its user must be allowed to do.
    pub authorization: Authorization,
    /// Whether it is refused before login.
    pub needs_authentication: bool,
    /// Whether it must be sent to the database `admin`.
    pub admin_database_only: bool,
    pub takes_write_concern: bool,
    pub read_concern: ReadConcernLevels,
    /// Whether `afterClusterTime` is an error of the command, and not only of a server without
    /// replication.
    pub refuses_after_cluster_time: bool,
    /// Whether its reply may come from the document cache.
    pub cacheable: bool,
    pub in_transaction: bool,
    /// Whether it belongs to a session, if one is named.
    pub in_session: bool,
    /// Whether a driver may retry it with the same `txnNumber`.
    pub retryable: bool,
    pub stable_api: StableApi,
    /// Its kind in `currentOp`, `top` and the profiler.
    pub kind: OperationKind,
    /// The latency that it counts for in `serverStatus` and `$collStats`.
    pub latency: LatencyKind,
    pub counted_collection: CountedCollection,
    /// The field with its statements, if each of them counts as an operation.
    pub counted_statements: Option<&'static str>,
    /// Whether it is profiled and logged when it is slow.
    pub profiled: bool,
    /// Whether it may need much memory, and must wait while memory is short. The others go on; some
    /// of them, such as `killCursors` and `getMore`, release memory.
    pub memory_intensive: bool,
    /// Whether it stops at a safe point of its own when it is killed, because an interruption
    /// elsewhere would leave partial effects. Writes always do.
    pub stops_at_safe_points: bool,
    pub existence: Existence,
    /// Whether its collection may be named by a UUID.
    pub takes_uuid: bool,
    /// The fields with secrets, whose values are hidden wherever the command is shown.
    pub sensitive: &'static [&'static str],
    /// The name before its fields in messages, if not the command's.
    pub fields_name: Option<&'static str>,
    pub internal_fields: &'static [(&'static str, InternalField)],
    pub time_limit: TimeLimitField,
    /// The types of its own fields, if the handler needs no more than that.
    pub own_fields: Option<Fields>,
    /// When its own fields are parsed, where that decides which error is reported.
    pub parsing: Option<FieldParsing>,
    /// Checks the command's operands before `collectionUUID` is compared.
    pub check_operands: Option<fn(&Call<'_>) -> Result<()>>,
    pub help: &'static str,
}

impl Spec {
    /// Returns the name before the command's fields in messages.
    pub fn fields_name(&self) -> &'static str {
        self.fields_name.unwrap_or(self.name)
    }

    /// Returns whether the command parses a field of all commands among its own.
    pub fn parses_shared(&self, field: &str) -> bool {
        self.parsing.as_ref().is_some_and(|parsing| parsing.shared_fields.contains(&field))
    }

    /// Returns whether the command leaves nothing behind but its reply. `command`: its body.
    pub fn only_reads(&self, command: Doc<'_>) -> bool {
        let last_stage = || command.get("pipeline")?.as_array()?.values().last()?.as_document()?.first();
        let stores = || last_stage().is_some_and(|stage| matches!(stage.key_bytes(), b"$out" | b"$merge"));
        self.access == Access::Read && !stores()
    }

    /// Returns whether the command changes documents or the catalog. `command`: its body.
    pub fn writes(&self, command: Doc<'_>) -> bool {
        match self.access {
            Access::Write => true,
            Access::Read => self.takes_write_concern && !self.only_reads(command),
            Access::Admin => self.takes_write_concern,
            Access::Nothing => false,
        }
    }

    /// Returns whether the command must be stopped at its own safe points when it is killed or its
    /// time is up. Any other may be dropped wherever it waits.
    pub fn stops_at_safe_points(&self, command: Doc<'_>) -> bool {
        match self.access {
            Access::Write => true,
            Access::Read => !self.only_reads(command),
            Access::Admin | Access::Nothing => self.stops_at_safe_points,
        }
    }

    /// Returns the lock that the command counts for.
    pub fn lock(&self) -> Option<LockKind> {
        match self.access {
            Access::Read => Some(LockKind::Read),
            Access::Write | Access::Admin => Some(LockKind::Write),
            Access::Nothing => None,
        }
    }
}

fn no_effect(_call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    Ok(())
}

/// A handler for commands that succeed without an effect.
pub const NO_EFFECT: Handler = Handler::Immediate(no_effect);

pub const NOTHING: Spec = Spec {
    name: "",
    aliases: &[],
    handler: NO_EFFECT,
    access: Access::Nothing,
    authorization: INTERNAL,
    needs_authentication: true,
    admin_database_only: false,
    takes_write_concern: false,
    read_concern: ReadConcernLevels::LocalOnly,
    refuses_after_cluster_time: false,
    cacheable: false,
    in_transaction: false,
    in_session: true,
    retryable: false,
    stable_api: StableApi::Excluded,
    kind: OperationKind::Command,
    latency: LatencyKind::Commands,
    counted_collection: CountedCollection::First,
    counted_statements: None,
    profiled: true,
    memory_intensive: false,
    stops_at_safe_points: false,
    existence: Existence::Always,
    takes_uuid: false,
    sensitive: &[],
    fields_name: None,
    internal_fields: &[],
    time_limit: TimeLimitField::Shared,
    own_fields: None,
    parsing: None,
    check_operands: None,
    help: "",
};
/// Commands that read documents.
pub const READ: Spec = Spec {
    access: Access::Read,
    authorization: on_collection(Action::Find),
    cacheable: true,
    in_transaction: true,
    read_concern: ReadConcernLevels::All,
    latency: LatencyKind::Reads,
    memory_intensive: true,
    ..NOTHING
};
/// Commands that write documents.
pub const WRITE: Spec = Spec {
    access: Access::Write,
    takes_write_concern: true,
    in_transaction: true,
    retryable: true,
    stable_api: StableApi::INCLUDED,
    latency: LatencyKind::Writes,
    memory_intensive: true,
    ..NOTHING
};
pub const CATALOG_READ: Spec = Spec { access: Access::Read, ..NOTHING };
pub const CATALOG_WRITE: Spec = Spec { access: Access::Admin, takes_write_concern: true, ..NOTHING };
pub const SERVER: Spec = Spec { access: Access::Admin, ..NOTHING };
/// Commands that each user may run.
pub const FOR_ALL: Spec = Spec { authorization: Authorization::Nothing, ..NOTHING };
/// Commands without fields of their own; an unknown field is reported before other errors.
pub const WITHOUT_FIELDS: Spec =
    Spec { own_fields: Some(fields::NONE), parsing: parsed_first(fields::parse_own, &[]), ..FOR_ALL };
pub const SERVER_WITHOUT_FIELDS: Spec = Spec { access: Access::Admin, authorization: INTERNAL, ..WITHOUT_FIELDS };
/// Commands that need no login.
pub const HANDSHAKE: Spec = Spec { needs_authentication: false, in_session: false, ..FOR_ALL };
