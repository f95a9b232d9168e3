//! What all commands share: the fields that any command may carry, read in one pass over its body.
//!
//! The command's own fields are set aside in their order, for the command to read.

use crate::arguments::{self, is_absent, unknown_field};
use crate::logical_session::LogicalSessionId;
use crate::strict_api;
use document::{Doc, Element, Kind, Value};
use error::{Code, Error, Result};
use mongo_wire::Request;
use mongo_wire::request::RequestKind;
use smallvec::SmallVec;
use std::time::Duration;

mod read_concern;
mod read_preference;

pub use read_concern::check_read_concern;
use read_preference::check_read_preference;

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
    /// Why each statement of a write is refused, where that is known beforehand.
    pub refusal: Option<Error>,
}

/// How safe a write shall be before it is acknowledged. One server acknowledges, so that is all that is left of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteConcern {
    /// On disk, not just with the operating system: `j: true` or `w: "majority"`.
    pub journal: bool,
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
            refusal: None,
        }
    }

    /// Reads the fields behind the command's name. In place, for an envelope is large.
    pub fn read(&mut self, request: &'a Request, body: Doc<'a>) -> Result<()> {
        let envelope = self;
        let mut database = None;
        let (mut api, mut transaction) = (Api::default(), TransactionFlags::default());
        for element in body.elements().skip(1) {
            match element.key_bytes() {
                b"$db" => database = Some(database_name(element)?),
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
                b"coordinator" => drop(session_flag(element)?),
                b"tracking_info" => check_tracking(element)?,
                b"$client" => check_client(element)?,
                b"$audit" => check_audit(element)?,
                b"mayBypassWriteBlocking" => check_bypass(element)?,
                b"stmtId" => check_statement_id(envelope.first.key(), element)?,
                b"$readPreference" => check_read_preference(element)?,
                b"lsid" | b"txnNumber" | b"autocommit" | b"startTransaction" if is_absent(element) => {}
                b"lsid" => envelope.session = logical_session(element)?,
                b"txnNumber" => envelope.txn_number = Some(long(element)?),
                b"autocommit" => transaction.autocommit = Some(session_flag(element)?),
                b"startTransaction" => transaction.start = Some(session_flag(element)?),
                b"maxTimeMS" => {
                    check_time_limit(envelope.first.key(), element)?;
                    envelope.time_limit = max_time(element)?;
                }
                b"maxTimeMSOpOnly" => {
                    let message = "Can not specify maxTimeMSOpOnly for non internal clients";
                    return Err(Error::new(Code::INVALID_OPTIONS, message));
                }
                b"comment" => envelope.comment = Some(element),
                b"readConcern" => envelope.read_concern = Some(element),
                b"writeConcern" => envelope.write_concern = Some(element),
                b"apiVersion" | b"apiStrict" | b"apiDeprecationErrors" if is_absent(element) => {}
                b"apiVersion" => api.version = Some(element),
                b"apiStrict" | b"apiDeprecationErrors" => {
                    let flag = arguments::boolean("APIParametersFromClient", element)?;
                    api.has_flags = true;
                    api.strict |= flag && element.key() == "apiStrict";
                }
                b"shardVersion" | b"databaseVersion" => check_shard_version(element)?,
                _ => envelope.fields.push(element),
            }
        }
        api.check()?;
        if api.strict {
            strict_api::check(envelope.first.key(), &envelope.fields)?;
        }
        envelope.in_transaction = transaction.check(envelope.txn_number)?;
        envelope.database = match (&request.kind, database) {
            (RequestKind::Query { database }, _) => database,
            (RequestKind::Msg { .. }, Some(database)) => database,
            (RequestKind::Msg { .. }, None) => {
                return Err(Error::new(Code(40571), "OP_MSG requests require a $db argument"));
            }
        };
        arguments::check_database(envelope.database)
    }
}

/// The versioned API's parameters. There is one version, and strictness only forbids what it leaves out.
#[derive(Default)]
struct Api<'a> {
    version: Option<Element<'a>>,
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
        match arguments::string("APIParametersFromClient", version)? {
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
    /// Whether the command is part of a transaction of several statements.
    fn check(&self, number: Option<i64>) -> Result<bool> {
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

/// The client as a router presents it: as in its own handshake.
fn check_client(element: Element<'_>) -> Result<()> {
    let mismatch = |message: String| Error::type_mismatch(message);
    let client = match element.value() {
        Value::Document(client) | Value::Array(client) => Some(client),
        _ => None,
    };
    let client = client.ok_or_else(|| mismatch("The client metadata document must be a document".to_owned()))?;
    for (part, fields) in [("driver", &["name", "version"][..]), ("os", &["type"])] {
        let value = client.get(part).ok_or_else(|| {
            let message = format!("Missing required sub-document '{part}' in the client metadata document");
            Error::new(Code::CLIENT_METADATA_MISSING_FIELD, message)
        })?;
        let inner = value.as_document().ok_or_else(|| {
            mismatch(format!("The '{part}' field is required to be a BSON document in the client metadata document"))
        })?;
        for field in fields {
            let value = inner.get(field).ok_or_else(|| {
                let message = format!("Missing required field '{part}.{field}' in the client metadata document");
                Error::new(Code::CLIENT_METADATA_MISSING_FIELD, message)
            })?;
            value.as_str().ok_or_else(|| {
                mismatch(format!("The '{part}.{field}' field must be a string in the client metadata document"))
            })?;
        }
    }
    Ok(())
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
fn check_statement_id(command: &str, element: Element<'_>) -> Result<()> {
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
fn check_time_limit(command: &str, element: Element<'_>) -> Result<()> {
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

impl WriteConcern {
    /// Reads a `writeConcern`. There is one server, and asking for more than it is refused as MongoDB's standalone does.
    pub fn parse(element: Element<'_>) -> Result<WriteConcern> {
        const WITHIN: &str = "WriteConcernOptions";
        let Some(document) = element.value().as_document() else {
            return Err(Error::type_mismatch(format!(
                "\"writeConcern\" had the wrong type. Expected object, found {}",
                element.kind.alias()
            )));
        };
        let mut concern = WriteConcern::default();
        for field in document.elements() {
            match field.key() {
                "w" => concern.journal |= check_w(field)?,
                "j" | "fsync" | "wtimeout" | "wElectionId" | "wOpTime" | "getLastError" | "provenance"
                    if is_absent(field) => {}
                "j" => concern.journal |= arguments::boolean_or_number(WITHIN, field)?,
                "fsync" => concern.journal |= arguments::boolean_or_number(WITHIN, field)?,
                "wtimeout"
                    if arguments::number_to_i64(field.value()).is_some_and(|limit| i32::try_from(limit).is_err()) =>
                {
                    return Err(Error::failed_to_parse("wtimeout must be a 32-bit integer"));
                }
                "provenance" => check_provenance(field)?,
                // One server answers at once or not at all; MongoDB takes anything here.
                "wtimeout" | "wElectionId" | "wOpTime" | "getLastError" => {}
                other => return Err(unknown_field(WITHIN, other)),
            }
        }
        if document.get("j").is_some_and(Value::is_truthy) && document.get("fsync").is_some_and(Value::is_truthy) {
            return Err(Error::failed_to_parse("fsync and j options cannot be used together"));
        }
        Ok(concern)
    }
}

/// Where the concern comes from, as servers tell one another.
fn check_provenance(field: Element<'_>) -> Result<()> {
    const WITHIN: &str = "WriteConcernOptions";
    match arguments::string(WITHIN, field)? {
        "clientSupplied" | "implicitDefault" | "customDefault" | "getLastErrorDefaults" | "internalWriteDefault" => {
            Ok(())
        }
        other => Err(Error::bad_value(format!(
            "Enumeration value '{other}' for field '{WITHIN}.provenance' is not a valid value."
        ))),
    }
}

/// Checks `w`; gives whether it asks for the journal.
fn check_w(field: Element<'_>) -> Result<bool> {
    match field.value() {
        Value::String("majority") => Ok(true),
        Value::String(mode) => Err(Error::bad_value(format!(
            "cannot use non-majority 'w' mode \"{mode}\" when a host is not a member of a replica set"
        ))),
        value if value.kind().is_number() => match arguments::number_to_i64(value).unwrap_or(0) {
            0 | 1 => Ok(false),
            nodes @ (i64::MIN..0 | 51..) => Err(Error::failed_to_parse(format!(
                "w has to be a non-negative number and not greater than 50; found: {nodes}"
            ))),
            _ => Err(Error::bad_value("cannot use 'w' > 1 when a host is not replicated")),
        },
        Value::Null | Value::Undefined => {
            Err(Error::bad_value("cannot use non-majority 'w' mode \"\" when a host is not a member of a replica set"))
        }
        // One server has all tags that are asked for.
        Value::Document(tags) if tags.is_empty() => Err(Error::failed_to_parse("tagged write concern requires tags")),
        Value::Document(tags) => match tags.elements().find(|tag| !tag.kind.is_number()) {
            Some(tag) => {
                let found = query::text::element(tag.key(), tag.value());
                let message = format!("tags must be a single level document with only number values; found: {found}");
                Err(Error::failed_to_parse(message))
            }
            None => Ok(false),
        },
        _ => {
            let found = field.kind.alias();
            Err(Error::failed_to_parse(format!("w has to be a number, string, or object; found: {found}")))
        }
    }
}
