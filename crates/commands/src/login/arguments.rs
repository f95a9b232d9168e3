//! The fields of `saslStart`, `saslContinue` and `authenticate`, also inside a `hello`.

use crate::arguments::{self, is_absent, missing_field, wrong_type};
use auth::name::EXTERNAL;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use document::{Element, Value};
use error::{Code, Error, Result};

/// A message of a SASL conversation. The reply has the form of the request: binary, or text in
/// Base64.
#[derive(Debug)]
pub struct Payload {
    pub bytes: Vec<u8>,
    pub is_text: bool,
}

/// The fields of `saslStart`.
#[derive(Debug)]
pub struct Start<'a> {
    pub mechanism: &'a str,
    pub payload: Payload,
    pub skips_empty_exchange: bool,
    /// The user's database, which the `saslStart` in a `hello` names, and no other.
    pub db: Option<&'a str>,
}

/// The fields of `saslContinue`.
#[derive(Debug)]
pub struct Continue {
    pub conversation: i32,
    pub payload: Payload,
}

/// The fields of `authenticate`.
#[derive(Debug)]
pub struct Authenticate<'a> {
    pub mechanism: &'a str,
    pub user: Option<&'a str>,
    /// The user's database in a `hello`, which is `$external` unless the client names it.
    pub db: Option<&'a str>,
}

impl<'a> Start<'a> {
    /// Parses the fields. `in_hello`: whether the command is part of a `hello`.
    pub fn parse(fields: impl Iterator<Item = Element<'a>>, in_hello: bool) -> Result<Start<'a>> {
        const WITHIN: &str = "saslStart";
        let (mut mechanism, mut payload, mut skips_empty_exchange, mut db) = (None, None, false, None);
        for field in fields {
            match field.key() {
                "mechanism" => mechanism = Some(arguments::string(WITHIN, field)?),
                "payload" => payload = Some(Payload::parse(field)?),
                "autoAuthorize" | "options" if is_absent(field) => {}
                // It has no effect, as in MongoDB.
                "autoAuthorize" => {}
                "options" => skips_empty_exchange = skips_empty(arguments::document(WITHIN, field)?)?,
                "db" if in_hello => db = Some(arguments::string(WITHIN, field)?),
                other => return Err(arguments::unknown_field(WITHIN, other)),
            }
        }
        if in_hello && db.is_none() {
            return Err(missing_field(WITHIN, "db"));
        }
        Ok(Start {
            mechanism: mechanism.ok_or_else(|| missing_field(WITHIN, "mechanism"))?,
            payload: payload.ok_or_else(|| missing_field(WITHIN, "payload"))?,
            skips_empty_exchange,
            db,
        })
    }
}

impl Continue {
    pub fn parse<'a>(fields: impl Iterator<Item = Element<'a>>) -> Result<Continue> {
        const WITHIN: &str = "saslContinue";
        let (mut conversation, mut payload) = (None, None);
        for field in fields {
            match (field.key(), field.value()) {
                ("conversationId", Value::Int32(id)) => conversation = Some(id),
                ("conversationId", _) if is_absent(field) => {}
                ("conversationId", _) => return Err(wrong_type(WITHIN, field, "int")),
                ("payload", _) => payload = Some(Payload::parse(field)?),
                (other, _) => return Err(arguments::unknown_field(WITHIN, other)),
            }
        }
        Ok(Continue {
            conversation: conversation.ok_or_else(|| missing_field(WITHIN, "conversationId"))?,
            payload: payload.ok_or_else(|| missing_field(WITHIN, "payload"))?,
        })
    }
}

impl<'a> Authenticate<'a> {
    /// Parses the fields. `in_hello`: as for [`Start::parse`].
    pub fn parse(fields: impl Iterator<Item = Element<'a>>, in_hello: bool) -> Result<Authenticate<'a>> {
        const WITHIN: &str = "authenticate";
        let (mut mechanism, mut user, mut db) = (None, None, in_hello.then_some(EXTERNAL));
        for field in fields {
            match field.key() {
                "mechanism" => mechanism = Some(arguments::string(WITHIN, field)?),
                "user" if is_absent(field) => {}
                "user" => user = Some(arguments::string(WITHIN, field)?),
                "db" if in_hello => db = Some(arguments::string(WITHIN, field)?),
                other => return Err(arguments::unknown_field(WITHIN, other)),
            }
        }
        Ok(Authenticate { mechanism: mechanism.ok_or_else(|| missing_field(WITHIN, "mechanism"))?, user, db })
    }
}

impl Payload {
    fn parse(field: Element<'_>) -> Result<Payload> {
        match field.value() {
            Value::Binary { bytes, .. } => Ok(Payload { bytes: bytes.to_vec(), is_text: false }),
            Value::String(text) => {
                let invalid = |_| Error::new(Code(10270), "Failed decoding SASL payload: invalid base64");
                Ok(Payload { bytes: STANDARD.decode(text).map_err(invalid)?, is_text: true })
            }
            _ => {
                let found = field.kind.alias();
                Err(Error::bad_value(format!("Invalid SASLPayload type. Expected Base64 or BinData, got: {found}")))
            }
        }
    }
}

/// Returns the value of the option `skipEmptyExchange`. Other options have no effect.
fn skips_empty(options: document::Doc<'_>) -> Result<bool> {
    match options.get("skipEmptyExchange") {
        None => Ok(false),
        Some(Value::Boolean(skips)) => Ok(skips),
        Some(_) => Err(Error::bad_value("skipEmptyExchange must be boolean")),
    }
}
