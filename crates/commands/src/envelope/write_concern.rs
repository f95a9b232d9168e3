//! `writeConcern`. One server acknowledges writes, so a concern that requires more cannot be
//! satisfied.

use crate::arguments;
use crate::arguments::{is_absent, unknown_field};
use document::{Doc, DocBuf, DocWriter, Element, Value};
use error::{Code, Error, Result};
use server::Topology;

const WITHIN: &str = "WriteConcernOptions";

/// How durable a write must be before it is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteConcern {
    /// Whether it must be on disk, not just with the operating system: `j: true` or `w:
    /// "majority"`.
    pub journal: bool,
    /// `w: 0`: the reply does not report the outcome.
    pub unacknowledged: bool,
}

/// A concern that one server alone cannot satisfy.
#[derive(Debug)]
pub struct Unsatisfiable {
    /// The error of a standalone server, which refuses the command; `None` if it takes the concern.
    pub refusal: Option<Error>,
    /// The error of a replica set of one member, which executes the write and reports it.
    pub report: Error,
}

impl WriteConcern {
    /// Reads a `writeConcern`; fails if a standalone server cannot satisfy it.
    pub fn parse(element: Element<'_>) -> Result<WriteConcern> {
        let (concern, unsatisfiable) = WriteConcern::read(element)?;
        let refusal = unsatisfiable.and_then(|unsatisfiable| unsatisfiable.refusal);
        refusal.map_or(Ok(concern), Err)
    }

    /// Reads a `writeConcern`; also returns the error to report beside the outcome, if the topology
    /// cannot satisfy it.
    pub fn parse_for(element: Element<'_>, topology: &Topology) -> Result<(WriteConcern, Option<Error>)> {
        if *topology == Topology::Standalone {
            return Ok((WriteConcern::parse(element)?, None));
        }
        let (concern, unsatisfiable) = WriteConcern::read(element)?;
        Ok((concern, unsatisfiable.map(|unsatisfiable| unsatisfiable.report)))
    }

    /// Reads a `writeConcern`; also returns why it cannot be satisfied.
    pub fn read(element: Element<'_>) -> Result<(WriteConcern, Option<Unsatisfiable>)> {
        let Some(document) = element.value().as_document() else {
            return Err(Error::type_mismatch(format!(
                "\"writeConcern\" had the wrong type. Expected object, found {}",
                element.kind.alias()
            )));
        };
        let mut concern = WriteConcern::default();
        let mut unsatisfiable = None;
        for field in document.elements() {
            match field.key() {
                "w" => match check_w(field)? {
                    Acknowledgement::None => concern.unacknowledged = true,
                    Acknowledgement::Own { journal } => concern.journal |= journal,
                    Acknowledgement::OfOthers(errors) => unsatisfiable = Some(errors),
                },
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
                // One server answers at once or not at all; MongoDB accepts any value here.
                "wtimeout" | "wElectionId" | "wOpTime" | "getLastError" => {}
                other => return Err(unknown_field(WITHIN, other)),
            }
        }
        if document.get("j").is_some_and(Value::is_truthy) && document.get("fsync").is_some_and(Value::is_truthy) {
            return Err(Error::failed_to_parse("fsync and j options cannot be used together"));
        }
        concern.unacknowledged &= !concern.journal;
        let unsatisfiable = unsatisfiable.map(|errors: Unsatisfiable| Unsatisfiable {
            report: errors.report.with_details(described(document).into_vec()),
            ..errors
        });
        Ok((concern, unsatisfiable))
    }
}

/// Returns the `errInfo` of a concern that cannot be satisfied: the concern as MongoDB repeats it.
fn described(concern: Doc<'_>) -> DocBuf {
    DocBuf::build(|writer| {
        let mut information = writer.document("errInfo");
        let mut repeated = information.document("writeConcern");
        write_w(concern.get("w"), &mut repeated);
        for flag in ["j", "fsync"] {
            if let Some(value) = concern.get(flag).filter(|value| !matches!(value, Value::Null | Value::Undefined)) {
                repeated.append(flag, value.is_truthy());
            }
        }
        let timeout = concern.get("wtimeout").and_then(arguments::number_to_i64);
        repeated.append("wtimeout", timeout.and_then(|limit| i32::try_from(limit).ok()).unwrap_or_default());
        let provenance = concern.get("provenance").and_then(Value::as_str);
        repeated.append("provenance", provenance.unwrap_or("clientSupplied"));
    })
}

fn write_w(w: Option<Value<'_>>, writer: &mut DocWriter<'_>) {
    match w {
        Some(Value::Null | Value::Undefined) => writer.append("w", ""),
        Some(value) if value.kind().is_number() => {
            let nodes = arguments::number_to_i64(value).and_then(|nodes| i32::try_from(nodes).ok());
            writer.append("w", nodes.unwrap_or_default());
        }
        Some(value) => writer.append("w", value),
        None => {}
    }
}

/// Appends `writeConcernError` to the reply of a write that was executed.
pub fn write_unsatisfied(error: &Error, reply: &mut DocWriter<'_>) {
    let mut writer = reply.document("writeConcernError");
    writer.append("code", error.code().0);
    writer.append("codeName", &*error.code().name());
    writer.append("errmsg", error.message());
    let details = error.details().and_then(Doc::from_bytes).unwrap_or(Doc::EMPTY);
    details.elements().for_each(|element| writer.append_element(element));
}

/// The servers whose acknowledgement a write waits for.
enum Acknowledgement {
    None,
    Own {
        journal: bool,
    },
    /// Other servers, which do not exist.
    OfOthers(Unsatisfiable),
}

/// Checks the origin of the concern, which servers send to one another.
fn check_provenance(field: Element<'_>) -> Result<()> {
    match arguments::string(WITHIN, field)? {
        "clientSupplied" | "implicitDefault" | "customDefault" | "getLastErrorDefaults" | "internalWriteDefault" => {
            Ok(())
        }
        other => Err(Error::bad_value(format!(
            "Enumeration value '{other}' for field '{WITHIN}.provenance' is not a valid value."
        ))),
    }
}

fn of_mode(mode: &str) -> Acknowledgement {
    let refusal = format!("cannot use non-majority 'w' mode \"{mode}\" when a host is not a member of a replica set");
    let report = format!("No write concern mode named '{mode}' found in replica set configuration");
    Acknowledgement::OfOthers(Unsatisfiable {
        refusal: Some(Error::bad_value(refusal)),
        report: Error::new(Code::UNKNOWN_REPL_WRITE_CONCERN, report),
    })
}

fn of_nodes() -> Acknowledgement {
    Acknowledgement::OfOthers(Unsatisfiable {
        refusal: Some(Error::bad_value("cannot use 'w' > 1 when a host is not replicated")),
        report: Error::new(Code::UNSATISFIABLE_WRITE_CONCERN, "Not enough data-bearing nodes"),
    })
}

/// A standalone server satisfies all tags; the configuration of the presented set has none.
fn of_tags(tags: Doc<'_>) -> Acknowledgement {
    let tag = tags.first().map_or("", |tag| tag.key());
    let report = Error::new(Code::NO_SUCH_KEY, format!("No replica set tag key {tag} in config"));
    Acknowledgement::OfOthers(Unsatisfiable { refusal: None, report })
}

/// Reads `w`.
fn check_w(field: Element<'_>) -> Result<Acknowledgement> {
    Ok(match field.value() {
        Value::String("majority") => Acknowledgement::Own { journal: true },
        Value::String(mode) => of_mode(mode),
        Value::Null | Value::Undefined => of_mode(""),
        value if value.kind().is_number() => match arguments::number_to_i64(value).unwrap_or(0) {
            0 => Acknowledgement::None,
            1 => Acknowledgement::Own { journal: false },
            nodes @ (i64::MIN..0 | 51..) => {
                return Err(Error::failed_to_parse(format!(
                    "w has to be a non-negative number and not greater than 50; found: {nodes}"
                )));
            }
            _ => of_nodes(),
        },
        Value::Document(tags) if tags.is_empty() => {
            return Err(Error::failed_to_parse("tagged write concern requires tags"));
        }
        Value::Document(tags) => match tags.elements().find(|tag| !tag.kind.is_number()) {
            Some(tag) => {
                let found = values::text::element(tag.key(), tag.value());
                let message = format!("tags must be a single level document with only number values; found: {found}");
                return Err(Error::failed_to_parse(message));
            }
            None => of_tags(tags),
        },
        _ => {
            let found = field.kind.alias();
            return Err(Error::failed_to_parse(format!("w has to be a number, string, or object; found: {found}")));
        }
    })
}
