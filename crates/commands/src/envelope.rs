//! What all commands share: the fields that any command may carry, read in one pass over its body.
//!
//! The command's own fields are set aside in their order, for the command to read.

use crate::arguments::{self, is_absent, unknown_field};
use crate::logical_session::LogicalSessionId;
use crate::strict_api;
use crate::table::Spec;
use document::{Doc, Element, Kind, Value};
use error::{Code, Error, Result};
use mongo_wire::Request;
use mongo_wire::request::RequestKind;
use smallvec::SmallVec;
use std::time::Duration;

mod client_metadata;
mod mistakes;
mod read_concern;
mod read_preference;
mod write_concern;

pub use client_metadata::check_client;
pub use mistakes::{Mistakes, Phase};
pub use read_concern::check_read_concern;
use read_preference::check_read_preference;
pub use write_concern::{WriteConcern, write_unsatisfied};

/// A command taken apart.
#[derive(Debug)]
pub struct Envelope<'a> {
    pub database: &'a str,
    /// The element that names the command.
    pub first: Element<'a>,
    /// The command's own fields.
    pub fields: SmallVec<[Element<'a>; 8]>,
    pub session: Option<LogicalSessionId>,
    pub txn_number: Option<i64>,
    /// `autocommit` or `startTransaction` is there: part of a transaction of several statements.
    pub in_transaction: bool,
    pub time_limit: Option<Duration>,
    pub comment: Option<Element<'a>>,
    pub read_concern: Option<Element<'a>>,
    pub write_concern: Option<Element<'a>>,
    /// What `write_concern` asks for, once it is known that the command takes one.
    pub durability: WriteConcern,
    /// Why `write_concern` cannot be satisfied, where the write is carried out nevertheless.
    pub unsatisfied: Option<Error>,
    /// What the command is for is asked, and nothing else.
    pub asks_for_help: bool,
    /// Why each statement of a write is refused, where that is known beforehand.
    pub refusal: Option<Error>,
}

/// The command's body and its name, before anything else is known about it.
pub fn body(request: &Request) -> (Doc<'_>, Option<Element<'_>>) {
    let body = request.body();
    let first = body.first();
    // Old drivers wrap an OP_QUERY's command to send a read preference beside it.
    match (&request.kind, first) {
        (RequestKind::Query { .. }, Some(element)) if matches!(element.key(), "$query" | "query") => {
            let inner = element.value().as_document().unwrap_or(Doc::EMPTY);
            (inner, inner.first())
        }
        _ => (body, first),
    }
}

/// The fields of a command inside another one (`explain`) that are its own.
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
    /// What is known from a command's name alone.
    #[inline]
    pub fn new(first: Element<'a>) -> Envelope<'a> {
        Envelope {
            database: "",
            first,
            fields: SmallVec::new(),
            session: None,
            txn_number: None,
            in_transaction: false,
            time_limit: None,
            comment: None,
            read_concern: None,
            write_concern: None,
            durability: WriteConcern::default(),
            unsatisfied: None,
            asks_for_help: false,
            refusal: None,
        }
    }

    /// Whether the read must see every write acknowledged before it, so that no cache may answer.
    pub fn is_linearizable(&self) -> bool {
        let concern = self.read_concern.and_then(|concern| concern.value().as_document());
        concern.is_some_and(|concern| concern.get("level") == Some(Value::String("linearizable")))
    }

    /// Reads the fields behind the command's name. In place, for an envelope is large.
    pub fn read(&mut self, request: &'a Request, body: Doc<'a>, spec: &Spec, mistakes: &mut Mistakes) {
        let envelope = self;
        let mut database = None;
        let reads_as_a_whole = spec.reads.as_ref().is_some_and(|reading| reading.at == Phase::OwnFields);
        let (mut api, mut transaction) = (Api::default(), TransactionFlags::default());
        for element in body.elements().skip(1) {
            match element.key_bytes() {
                b"$db" => database = mistakes.hear(Phase::Database, database_name(element)),
                b"$clusterTime"
                | b"$configServerState"
                | b"$oplogQueryData"
                | b"$queryOptions"
                | b"$replData"
                | b"$configTime"
                | b"$topologyTime"
                | b"operationTime"
                | b"clientOperationKey"
                | b"allowImplicitCollectionCreation" => {}
                b"coordinator" if is_absent(element) => {}
                b"coordinator" => drop(mistakes.hear(Phase::Session, session_flag(element))),
                b"tracking_info" => drop(mistakes.hear(Phase::Metadata, check_tracking(element))),
                b"$client" => drop(mistakes.hear(Phase::Metadata, check_client(element))),
                b"$audit" => drop(mistakes.hear(Phase::Metadata, check_audit(element))),
                b"mayBypassWriteBlocking" => drop(mistakes.hear(Phase::Metadata, check_bypass(element))),
                b"stmtId" => drop(mistakes.hear(Phase::OwnFields, check_statement_id(spec.name, element))),
                b"$readPreference" => drop(mistakes.hear(Phase::ReadPreference, check_read_preference(element))),
                b"lsid" | b"txnNumber" | b"autocommit" | b"startTransaction" if is_absent(element) => {}
                b"lsid" => envelope.session = mistakes.hear(Phase::Session, logical_session(element)).flatten(),
                b"txnNumber" => envelope.txn_number = mistakes.hear(Phase::Session, long(element)),
                b"autocommit" => transaction.autocommit = mistakes.hear(Phase::Session, session_flag(element)),
                b"startTransaction" => transaction.start = mistakes.hear(Phase::Session, session_flag(element)),
                b"maxTimeMS" => {
                    mistakes.hear(Phase::OwnFields, check_time_limit(spec.name, element));
                    envelope.time_limit = mistakes.hear(Phase::TimeLimit, max_time(element)).flatten();
                }
                b"maxTimeMSOpOnly" => drop(mistakes.hear(Phase::Internal, refuse_internal_time_limit())),
                b"$maxTimeMS" if !reads_as_a_whole => {
                    mistakes.hear(Phase::Internal, refuse_old_time_limit());
                }
                b"help" if !reads_as_a_whole => envelope.asks_for_help = element.value().is_truthy(),
                b"comment" => envelope.comment = Some(element),
                b"readConcern" => envelope.read_concern = Some(element),
                b"writeConcern" => envelope.write_concern = Some(element),
                b"apiVersion" | b"apiStrict" | b"apiDeprecationErrors" if is_absent(element) => {}
                b"apiVersion" => api.version = mistakes.hear(Phase::Api, arguments::string(OF_API, element)),
                b"apiStrict" | b"apiDeprecationErrors" => {
                    let flag = mistakes.hear(Phase::Api, arguments::boolean(OF_API, element)).unwrap_or_default();
                    api.has_flags = true;
                    api.strict |= flag && element.key() == "apiStrict";
                }
                b"shardVersion" | b"databaseVersion" => {
                    mistakes.hear(Phase::ShardVersion, check_shard_version(element));
                }
                _ => envelope.fields.push(element),
            }
        }
        mistakes.hear(Phase::Api, api.check());
        if api.strict {
            mistakes.hear(Phase::Api, strict_api::check(envelope.first.key(), &envelope.fields));
        }
        let in_transaction = transaction.check(envelope.txn_number, spec.in_session);
        envelope.in_transaction = mistakes.hear(Phase::SessionUse, in_transaction).unwrap_or_default();
        let database = match (&request.kind, database) {
            (RequestKind::Query { database }, _) => Some(database.as_str()),
            (RequestKind::Msg { .. }, Some(database)) => Some(database),
            (RequestKind::Msg { .. }, None) => mistakes.hear(Phase::Database, Err(no_database())),
        };
        if let Some(database) = database {
            envelope.database = database;
            let phase = if database.contains('.') { Phase::Database } else { Phase::DatabaseName };
            mistakes.hear(phase, arguments::check_database(database));
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

/// Errors: those of `$db`, which are told of a command that there is not, too.
pub fn check_database_of(body: Doc<'_>) -> Result<()> {
    match body.element("$db").map(database_name).transpose()? {
        Some(database) if database.contains('.') => arguments::check_database(database),
        _ => Ok(()),
    }
}

/// The versioned API's parameters. There is one version, and strictness only forbids what it leaves out.
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

/// What a statement says of the transaction it is part of.
#[derive(Default)]
struct TransactionFlags {
    autocommit: Option<bool>,
    start: Option<bool>,
}

impl TransactionFlags {
    /// Whether the command is part of a transaction of several statements. Commands of the handshake have no part in one.
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

/// On whose behalf a router asks.
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

/// Which operation of a router this is one of.
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

/// The number of a statement within its session, which commands that write read as a field of their own.
pub fn check_statement_id(command: &str, element: Element<'_>) -> Result<()> {
    let writes = matches!(command, "insert" | "update" | "delete" | "findAndModify" | "findandmodify");
    if !writes || is_absent(element) || element.kind == Kind::Int32 {
        return Ok(());
    }
    Err(arguments::wrong_type(command, element, "int"))
}

fn session_flag(element: Element<'_>) -> Result<bool> {
    arguments::boolean("OperationSessionInfo", element)
}

/// What routers send along with a command; it has to be well-formed.
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

/// The id in an `lsid`: `{id: UUID, …}`.
pub fn logical_session(element: Element<'_>) -> Result<Option<LogicalSessionId>> {
    let lsid = arguments::document("OperationSessionInfo", element)?;
    let mut session = None;
    for field in lsid.elements() {
        match field.key() {
            "id" => session = Some(uuid("OperationSessionInfo.lsid", field)?),
            // Who the session belongs to: sent between servers.
            "uid" | "txnNumber" | "txnUUID" => {}
            other => return Err(unknown_field("OperationSessionInfo.lsid", other)),
        }
    }
    session.map(Some).ok_or_else(|| arguments::missing_field("OperationSessionInfo.lsid", "id"))
}

/// A UUID: binary of subtype 4.
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

/// Two commands read `maxTimeMS` as one of their own fields, with other errors.
pub fn check_time_limit(command: &str, element: Element<'_>) -> Result<()> {
    if !matches!(command, "aggregate" | "getMore") || is_absent(element) {
        return Ok(());
    }
    match arguments::integer(command, element)? {
        negative @ ..0 if command == "aggregate" => Err(arguments::below_zero("maxTimeMS", negative)),
        _ => Ok(()),
    }
}

/// `maxTimeMS`; zero stands for no limit.
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
