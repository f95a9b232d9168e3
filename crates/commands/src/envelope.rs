//! What all commands share: the fields that any command may carry, read in one pass over its body.
//!
//! The command's own fields are collected in their order, for the command to parse.

use crate::arguments::{self, is_absent, unknown_field};
use crate::table::spec::{Spec, TimeLimitField};
use document::{Doc, Element, Kind, Value};
use error::{Code, Error, Result};
use first_error::{FirstError, Phase};
use mongo_wire::Request;
use mongo_wire::request::RequestKind;
use names::Names;
use server::logical_session::{LogicalSessionId, UserDigest};
use smallvec::SmallVec;
use std::time::Duration;
use store::ReadPreference;

mod client_metadata;
mod cluster_time;
pub mod collection_by_uuid;
pub mod collection_uuid;
pub mod first_error;
pub mod internal_fields;
mod names;
mod read_concern;
mod read_preference;
mod stable_api;
mod write_concern;

pub use client_metadata::check_client;
pub use cluster_time::read_cluster_time;
pub use read_concern::{
    SnapshotTime, check_read_concern, check_snapshot_time, refuse_level, wait_for_read_concern, wait_for_time,
};
use read_preference::{check_read_preference, preference_of};
pub use write_concern::{WriteConcern, write_unsatisfied};

/// The parts of a command.
#[derive(Debug)]
pub struct Envelope<'a> {
    pub database: &'a str,
    /// The element that names the command.
    pub first: Element<'a>,
    /// The command's own fields.
    pub fields: SmallVec<[Element<'a>; 8]>,
    pub session: Option<LogicalSessionId>,
    pub txn_number: Option<i64>,
    /// Whether it belongs to a transaction of several statements (`autocommit`,
    /// `startTransaction`).
    pub in_transaction: bool,
    /// Whether it is the transaction's first statement.
    pub starts_transaction: bool,
    pub time_limit: Option<Duration>,
    pub comment: Option<Element<'a>>,
    /// The latest time that the client has received from any server.
    pub cluster_time: Option<Element<'a>>,
    pub read_concern: Option<Element<'a>>,
    pub read_preference: Option<Element<'a>>,
    pub write_concern: Option<Element<'a>>,
    /// The parsed `write_concern`, if the command supports one.
    pub durability: WriteConcern,
    /// Why `write_concern` cannot be satisfied, if the write is executed nevertheless.
    pub unsatisfied: Option<Error>,
    /// Whether only the command's description is requested (`help: true`).
    pub asks_for_help: bool,
    /// Why each statement of a write is refused, if that is known in advance.
    pub refusal: Option<Error>,
}

/// Returns the command's body and the element that names it, before anything else is known about
/// it.
pub fn body(request: &Request) -> (Doc<'_>, Option<Element<'_>>) {
    let body = request.body();
    (body, body.first())
}

/// Returns the own fields of a command inside another one (`explain`).
pub fn own_fields(command: Doc<'_>) -> impl Iterator<Item = Element<'_>> {
    command.elements().skip(1).filter(|element| {
        !element.key().starts_with('$')
            && !matches!(
                element.key(),
                "lsid"
                    | "comment"
                    | "maxTimeMS"
                    | "readConcern"
                    | "writeConcern"
                    | "txnNumber"
                    | "autocommit"
                    | "startTransaction"
                    | "apiVersion"
                    | "apiStrict"
                    | "apiDeprecationErrors"
            )
    })
}

impl<'a> Envelope<'a> {
    /// Creates an envelope from the element that names the command.
    #[inline]
    pub fn new(first: Element<'a>) -> Envelope<'a> {
        Envelope {
            database: "",
            first,
            fields: SmallVec::new(),
            session: None,
            txn_number: None,
            in_transaction: false,
            starts_transaction: false,
            time_limit: None,
            comment: None,
            cluster_time: None,
            read_concern: None,
            read_preference: None,
            write_concern: None,
            durability: WriteConcern::default(),
            unsatisfied: None,
            asks_for_help: false,
            refusal: None,
        }
    }

    /// Returns the number of the transaction that the command belongs to.
    pub fn transaction(&self) -> Option<i64> {
        self.txn_number.filter(|_| self.in_transaction)
    }

    /// Returns the number of the retryable write that the command is.
    pub fn retryable_write(&self) -> Option<i64> {
        self.txn_number.filter(|_| !self.in_transaction)
    }

    /// Returns the servers that the client wants to read from, if the command says so.
    pub fn read_preference(&self) -> Option<ReadPreference> {
        let concern = self.read_concern.and_then(|concern| concern.value().as_document());
        let is_causal = concern.is_some_and(|concern| concern.get("afterClusterTime").is_some());
        let mut preference = preference_of(self.read_preference?)?;
        preference.is_causal = is_causal;
        Some(preference)
    }

    /// Returns whether the read must see every write acknowledged before it, so that no cache may
    /// answer.
    pub fn is_linearizable(&self) -> bool {
        let concern = self.read_concern.and_then(|concern| concern.value().as_document());
        concern.is_some_and(|concern| concern.get("level") == Some(Value::String("linearizable")))
    }

    /// Returns the snapshot that the command reads outside of a transaction, if it demands one.
    pub fn snapshot_time(&self) -> Option<SnapshotTime> {
        self.read_concern.filter(|_| !self.in_transaction).and_then(SnapshotTime::of)
    }

    /// Reads the fields behind the command's name. In place, because an envelope is large. `user`:
    /// the owner of sessions.
    pub fn read(
        &mut self,
        request: &'a Request,
        body: Doc<'a>,
        spec: &Spec,
        user: &UserDigest,
        errors: &mut FirstError,
    ) {
        let envelope = self;
        let mut database = None;
        let parsed_first = spec.parsing.as_ref().is_some_and(|parsing| parsing.phase == Phase::OwnFields);
        let (mut api, mut transaction) = (Api::default(), TransactionFlags::default());
        let mut names = Names::default();
        for (index, element) in body.elements().enumerate() {
            errors.record(Phase::Api, names.add(body, element));
            if index == 0 {
                continue;
            }
            match element.key_bytes() {
                b"$db" => database = errors.record(Phase::Database, database_name(element)),
                b"$clusterTime" => envelope.cluster_time = Some(element),
                b"$configServerState"
                | b"$oplogQueryData"
                | b"$queryOptions"
                | b"$replData"
                | b"$configTime"
                | b"$topologyTime"
                | b"operationTime"
                | b"clientOperationKey"
                | b"allowImplicitCollectionCreation" => {}
                b"coordinator" if is_absent(element) => {}
                b"coordinator" => drop(errors.record(Phase::Session, session_flag(element))),
                b"tracking_info" => drop(errors.record(Phase::Metadata, check_tracking(element))),
                b"$client" => drop(errors.record(Phase::Metadata, check_client(element))),
                b"$audit" => drop(errors.record(Phase::Metadata, check_audit(element))),
                b"mayBypassWriteBlocking" => drop(errors.record(Phase::Metadata, check_bypass(element))),
                b"stmtId" if !spec.retryable => {}
                b"stmtId" => drop(errors.record(Phase::OwnFields, check_statement_id(spec.name, element))),
                b"$readPreference" => {
                    errors.record(Phase::ReadPreference, check_read_preference(element));
                    envelope.read_preference = Some(element);
                }
                b"lsid" | b"txnNumber" | b"autocommit" | b"startTransaction" if is_absent(element) => {}
                b"lsid" => envelope.session = errors.record(Phase::Session, logical_session(element, user)).flatten(),
                b"txnNumber" => envelope.txn_number = errors.record(Phase::Session, long(element)),
                b"autocommit" => transaction.autocommit = errors.record(Phase::Session, session_flag(element)),
                b"startTransaction" => transaction.start = errors.record(Phase::Session, session_flag(element)),
                b"maxTimeMS" => {
                    errors.record(Phase::OwnFields, check_time_limit(spec.name, spec.time_limit, element));
                    envelope.time_limit = errors.record(Phase::TimeLimit, max_time(element)).flatten();
                }
                b"maxTimeMSOpOnly" => drop(errors.record(Phase::Internal, refuse_internal_time_limit())),
                b"$maxTimeMS" if !parsed_first => {
                    errors.record(Phase::Internal, refuse_old_time_limit());
                }
                b"help" if !parsed_first => envelope.asks_for_help = element.value().is_truthy(),
                b"comment" => envelope.comment = Some(element),
                b"readConcern" => envelope.read_concern = Some(element),
                b"writeConcern" => envelope.write_concern = Some(element),
                b"apiVersion" | b"apiStrict" | b"apiDeprecationErrors" if is_absent(element) => {}
                b"apiVersion" => api.version = errors.record(Phase::Api, arguments::string(OF_API, element)),
                b"apiStrict" | b"apiDeprecationErrors" => {
                    let flag = errors.record(Phase::Api, arguments::boolean(OF_API, element)).unwrap_or_default();
                    api.has_flags = true;
                    api.strict |= flag && element.key() == "apiStrict";
                }
                b"shardVersion" | b"databaseVersion" => {
                    errors.record(Phase::ShardVersion, check_shard_version(element));
                }
                _ => envelope.fields.push(element),
            }
        }
        errors.record(Phase::Api, api.check());
        if api.strict {
            errors.record(Phase::Api, stable_api::check(spec, envelope.first.key(), &envelope.fields));
        }
        envelope.starts_transaction = transaction.start == Some(true);
        let in_transaction = transaction.check(envelope.txn_number, spec.in_session);
        envelope.in_transaction = errors.record(Phase::SessionUse, in_transaction).unwrap_or_default();
        let database = match (&request.kind, database) {
            (RequestKind::Query { database }, _) => Some(database.as_str()),
            (RequestKind::Msg { .. }, Some(database)) => Some(database),
            (RequestKind::Msg { .. }, None) => errors.record(Phase::Database, Err(no_database())),
        };
        if let Some(database) = database {
            envelope.database = database;
            let phase = if database.contains('.') { Phase::Database } else { Phase::DatabaseName };
            errors.record(phase, arguments::check_database(database));
        }
    }
}

/// What MongoDB calls the API's parameters in messages.
const OF_API: &str = "APIParametersFromClient";

fn no_database() -> Error {
    Error::new(Code(40571), "OP_MSG requests require a $db argument")
}

fn refuse_internal_time_limit() -> Result<()> {
    Err(Error::new(Code::INVALID_OPTIONS, "Can not specify maxTimeMSOpOnly for non internal clients"))
}

fn refuse_old_time_limit() -> Result<()> {
    Err(Error::new(Code::INVALID_OPTIONS, "no such command option $maxTimeMs; use maxTimeMS instead"))
}

/// Checks `$db` for a command that does not exist.
pub fn check_database_of(body: Doc<'_>) -> Result<()> {
    match body.element("$db").map(database_name).transpose()? {
        Some(database) if database.contains('.') => arguments::check_database(database),
        _ => Ok(()),
    }
}

/// The stable API's parameters. There is one version; strictness forbids what it excludes.
#[derive(Default)]
struct Api<'a> {
    version: Option<&'a str>,
    /// `apiStrict` or `apiDeprecationErrors`, whatever they say.
    has_flags: bool,
    strict: bool,
}

impl Api<'_> {
    fn check(&self) -> Result<()> {
        let Some(version) = self.version else {
            if self.has_flags {
                let message = "Provided apiStrict and/or apiDeprecationErrors without passing apiVersion";
                return Err(Error::new(Code(4886600), message));
            }
            return Ok(());
        };
        match version {
            "1" => Ok(()),
            other => Err(Error::new(Code::API_VERSION_ERROR, format!("Cannot accept API version {other}"))),
        }
    }
}

/// The fields about the transaction that a command belongs to.
#[derive(Default)]
struct TransactionFlags {
    autocommit: Option<bool>,
    start: Option<bool>,
}

impl TransactionFlags {
    /// Returns whether the command belongs to a transaction of several statements. Commands of the
    /// handshake must not.
    fn check(&self, number: Option<i64>, in_session: bool) -> Result<bool> {
        if !in_session && self.autocommit.is_some() {
            return Err(Error::new(
                Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION,
                "This command is not supported in transactions",
            ));
        }
        if !in_session && number.is_some() {
            return Err(Error::new(Code(50889), "It is illegal to provide a txnNumber for this command"));
        }
        let invalid = |message: &str| Err(Error::new(Code::INVALID_OPTIONS, message));
        match (number, self.autocommit, self.start) {
            (_, None, None) => Ok(false),
            (None, Some(_), _) => invalid("'autocommit' field requires a transaction number to also be specified"),
            (_, None, Some(_)) => invalid("'startTransaction' field requires 'autocommit' field to also be specified"),
            (Some(_), Some(true), _) => invalid("Specifying autocommit=true is not allowed."),
            (_, _, Some(false)) => invalid("Specifying startTransaction=false is not allowed."),
            _ => Ok(true),
        }
    }
}

/// Checks the users on whose behalf a router sends the command.
fn check_audit(element: Element<'_>) -> Result<()> {
    const WITHIN: &str = "$audit";
    let Some(audit) = element.value().as_document() else { return Ok(()) };
    const PARTS: [&str; 2] = ["$impersonatedUsers", "$impersonatedRoles"];
    for field in audit.elements().filter(|field| *field.key() != *"$impersonatedUser") {
        if !PARTS.contains(&field.key()) {
            return Err(unknown_field(WITHIN, field.key()));
        }
        arguments::array(WITHIN, field)?;
    }
    let missing = PARTS.into_iter().find(|part| audit.get(part).is_none());
    missing.map_or(Ok(()), |part| Err(arguments::missing_field(WITHIN, part)))
}

/// Checks the metadata of the router's operation that the command belongs to.
fn check_tracking(element: Element<'_>) -> Result<()> {
    let Value::Document(tracking) = element.value() else {
        let found = element.kind.alias();
        let message = format!("TrackingMetadata element has incorrect type: expectedobject but got {found}");
        return Err(Error::type_mismatch(message));
    };
    match ["operId", "operName"].into_iter().find(|name| tracking.get(name).is_none()) {
        Some(name) => Err(Error::new(Code(4), format!("Missing expected field \"{name}\""))),
        None => Ok(()),
    }
}

fn check_bypass(element: Element<'_>) -> Result<()> {
    if element.kind == Kind::Boolean {
        return Ok(());
    }
    let message = format!("wrong type for field ({}) {} != bool", element.key(), element.kind.alias());
    Err(Error::new(Code(13111), message))
}

/// Checks the number of a statement within its session, which commands that write parse among their
/// own fields.
pub fn check_statement_id(command: &str, element: Element<'_>) -> Result<()> {
    if is_absent(element) || element.kind == Kind::Int32 {
        return Ok(());
    }
    Err(arguments::wrong_type(command, element, "int"))
}

fn session_flag(element: Element<'_>) -> Result<bool> {
    arguments::boolean("OperationSessionInfo", element)
}

/// Checks the versions that routers send along with a command: they must be well-formed.
fn check_shard_version(element: Element<'_>) -> Result<()> {
    let name = element.key();
    let (Value::Document(version) | Value::Array(version)) = element.value() else {
        return Err(Error::new(Code(10065), format!("invalid parameter: expected an object ({name})")));
    };
    match name {
        "shardVersion" if version.is_empty() => Err(Error::bad_value("Unexpected empty version array")),
        "databaseVersion" if version.get("uuid").is_none() => Err(arguments::missing_field("DatabaseVersion", "uuid")),
        _ => Ok(()),
    }
}

fn database_name(element: Element<'_>) -> Result<&str> {
    element.value().as_str().ok_or_else(|| {
        Error::new(Code(13111), format!("wrong type for field ($db) {} != string", element.kind.alias()))
    })
}

fn long(element: Element<'_>) -> Result<i64> {
    match element.value() {
        Value::Int64(number) => Ok(number),
        _ => Err(arguments::wrong_type("OperationSessionInfo", element, "long")),
    }
}

/// Reads an `lsid`: `{id: UUID, …}`. Its user is the one that it names, or else `user`.
pub fn logical_session(element: Element<'_>, user: &UserDigest) -> Result<Option<LogicalSessionId>> {
    const WITHIN: &str = "OperationSessionInfo.lsid";
    let lsid = arguments::document("OperationSessionInfo", element)?;
    let (mut session, mut user) = (None, *user);
    if lsid.get("txnNumber").is_some() && lsid.get("txnUUID").is_none() {
        let message = "Cannot specify txnNumber in lsid without specifying txnUUID";
        return Err(Error::new(Code::INVALID_OPTIONS, message));
    }
    for field in lsid.elements() {
        match field.key() {
            "id" => session = Some(uuid(WITHIN, field)?),
            "uid" if is_absent(field) => {}
            "uid" => user = user_digest(WITHIN, field)?,
            // The session's transaction, sent between servers.
            "txnNumber" | "txnUUID" => {}
            other => return Err(unknown_field(WITHIN, other)),
        }
    }
    let uuid = session.ok_or_else(|| arguments::missing_field(WITHIN, "id"))?;
    Ok(Some(LogicalSessionId { uuid, user }))
}

/// Reads the digest of a user's name. Fails with 14 or 12.
pub fn user_digest(within: &str, uid: Element<'_>) -> Result<UserDigest> {
    match uid.value() {
        Value::Binary { bytes, .. } => bytes.try_into().map_err(|_| {
            let message = format!("Unsupported SHA256Block hash length: {}", bytes.len());
            Error::new(Code(12), message)
        }),
        _ => Err(arguments::wrong_type(within, uid, "binData")),
    }
}

/// Reads a UUID: binary of subtype 4.
pub fn uuid(within: &str, element: Element<'_>) -> Result<[u8; 16]> {
    match element.value() {
        Value::Binary { subtype: 4, bytes } => bytes
            .try_into()
            .map_err(|_| Error::new(Code::INVALID_UUID, "uuid must be a 16-byte binary field with UUID (4) subtype")),
        Value::Binary { subtype, .. } => Err(Error::type_mismatch(format!(
            "BSON field '{within}.{}' is the wrong binData type '{}', expected type 'UUID'",
            element.key(),
            binary_subtype(subtype)
        ))),
        _ => Err(arguments::wrong_type(within, element, "binData")),
    }
}

fn binary_subtype(subtype: u8) -> &'static str {
    match subtype {
        0 => "general",
        1 => "function",
        2 => "byte-array-deprecated",
        3 => "UUID-deprecated",
        4 => "UUID",
        5 => "MD5",
        _ => "user-defined",
    }
}

/// Checks `maxTimeMS` for the commands that parse it among their own fields.
pub fn check_time_limit(command: &str, field: TimeLimitField, element: Element<'_>) -> Result<()> {
    if field == TimeLimitField::Shared || is_absent(element) {
        return Ok(());
    }
    match arguments::integer(command, element)? {
        negative @ ..0 if field == TimeLimitField::NonNegative => Err(arguments::below_zero("maxTimeMS", negative)),
        _ => Ok(()),
    }
}

/// Reads `maxTimeMS`; zero means no limit.
pub fn max_time(element: Element<'_>) -> Result<Option<Duration>> {
    let name = element.key();
    let milliseconds = match element.value() {
        Value::Int32(number) => i64::from(number),
        Value::Int64(number) => number,
        Value::Double(number) if number.fract() == 0.0 => number as i64,
        Value::Double(_) => return Err(Error::bad_value(format!("{name} has non-integral value"))),
        value @ Value::Decimal128(_) => arguments::number_to_i64(value).unwrap_or(0),
        _ => return Err(Error::bad_value(format!("{name} must be a number"))),
    };
    if !(0..=i64::from(i32::MAX)).contains(&milliseconds) {
        return Err(Error::bad_value(format!("{milliseconds} value for {name} is out of range")));
    }
    Ok((milliseconds > 0).then(|| Duration::from_millis(milliseconds as u64)))
}
