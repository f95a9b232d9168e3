//! Commands for monitoring and administration: `getDiagnosticData`, `validateDBMetadata`,
//! `dropConnections`, `getnonce`.

use crate::arguments;
use crate::arguments::{is_absent, missing_field, unknown_field, wrong_type};
use crate::call::{Call, Disposition};
use crate::command::admin::{catalog_counts, server_status};
use document::{Doc, DocWriter, Element, Value};
use error::{Code, Error, Result};
use store::Namespace;

/// Returns a nonce for a login mechanism that no longer exists; old clients still ask for one.
pub fn nonce(_call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    reply.append("nonce", &*format!("{:016x}", rand::random::<u64>()));
    Ok(())
}

/// Returns the current statistics, as a server that records a history of them would.
pub async fn diagnostic_data(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    catalog_counts::refresh(call).await;
    let now = Value::DateTime(call.now_ms);
    let mut data = reply.document("data");
    data.append("start", now);
    {
        let mut status = data.document("serverStatus");
        status.append("start", now);
        server_status::write(call, &mut status);
        status.append("end", Value::DateTime(server::clock::now_ms()));
    }
    data.append("end", Value::DateTime(server::clock::now_ms()));
    Ok(Disposition::Reply)
}

/// Succeeds: there are no connections to other servers.
pub fn drop_connections(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    parse_drop_connections(call)
}

/// Parses the fields of a `dropConnections`.
pub fn parse_drop_connections(call: &Call<'_>) -> Result<()> {
    const WITHIN: &str = "dropConnections";
    let mut hosts = None;
    for field in call.fields() {
        match field.key() {
            "hostAndPort" => hosts = Some(arguments::array(WITHIN, field)?),
            other => return Err(unknown_field(WITHIN, other)),
        }
    }
    let hosts = hosts.ok_or_else(|| missing_field(WITHIN, "hostAndPort"))?;
    for host in hosts.elements() {
        let Some(name) = host.value().as_str() else {
            return Err(wrong_type("dropConnections.hostAndPort", host, "string"));
        };
        if name.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_err()) {
            return Err(Error::failed_to_parse("Did not consume whole string."));
        }
    }
    Ok(())
}

/// The fields of a `validateDBMetadata`.
#[derive(Default)]
struct Validation<'a> {
    database: Option<&'a str>,
    collection: Option<&'a str>,
    strict: bool,
}

impl<'a> Validation<'a> {
    fn read(call: &Call<'a>) -> Result<Validation<'a>> {
        const WITHIN: &str = "validateDBMetadata";
        let mut validation = Validation::default();
        let mut parameters = None;
        for field in call.fields() {
            match field.key() {
                "apiParameters" => parameters = Some(arguments::document(WITHIN, field)?),
                "db" | "collection" if is_absent(field) => {}
                "db" => validation.database = Some(arguments::string(WITHIN, field)?),
                "collection" => validation.collection = Some(arguments::string(WITHIN, field)?),
                other => return Err(unknown_field(WITHIN, other)),
            }
        }
        let parameters = parameters.ok_or_else(|| missing_field(WITHIN, "apiParameters"))?;
        validation.strict = strictness(parameters)?;
        Ok(validation)
    }
}

/// Returns whether the parameters ask for the stable API only.
fn strictness(parameters: Doc<'_>) -> Result<bool> {
    const WITHIN: &str = "validateDBMetadata.apiParameters";
    let flag = |field: Element<'_>| match field.value() {
        Value::Boolean(flag) => Ok(flag),
        _ => {
            let (name, found) = (field.key(), field.kind.alias());
            Err(Error::type_mismatch(format!("Field '{name}' should be a boolean value, but found: {found}")))
        }
    };
    let mut strict = false;
    for field in parameters.elements() {
        match field.key() {
            "version" => drop(arguments::string(WITHIN, field)?),
            "strict" => strict = flag(field)?,
            "deprecationErrors" => drop(flag(field)?),
            other => return Err(unknown_field(WITHIN, other)),
        }
    }
    parameters.get("version").map_or_else(|| Err(missing_field(WITHIN, "version")), |_| Ok(strict))
}

/// Parses the fields of a `validateDBMetadata`.
pub fn parse_validate_metadata(call: &Call<'_>) -> Result<()> {
    Validation::read(call).map(drop)
}

/// Lists the indexes that are not part of the stable API.
pub async fn validate_metadata(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<Disposition> {
    let validation = Validation::read(call)?;
    let store = &*call.worker.store;
    let mut errors = reply.array("apiVersionErrors");
    if !validation.strict {
        return Ok(Disposition::Reply);
    }
    let all = store.databases().await?.into_iter().map(|database| database.name);
    let databases = match validation.database {
        Some(database) => vec![database.to_owned()],
        // All databases, whichever the command is sent to.
        None => all.collect(),
    };
    for database in databases {
        for collection in store.collections(&database).await? {
            if validation.collection.is_some_and(|name| name != collection.name) {
                continue;
            }
            let namespace = Namespace::new(&database, &collection.name);
            for index in store.indexes(&namespace).await?.unwrap_or_default() {
                if !index.key.as_doc().values().any(|kind| kind == Value::String("text")) {
                    continue;
                }
                let mut error = errors.document();
                error.append("ns", &*namespace.to_string());
                error.append("code", Code::API_STRICT_ERROR.0);
                error.append("codeName", &*Code::API_STRICT_ERROR.name());
                let name = &index.name;
                let message = format!("The index with name {name} is not allowed in API version 1.");
                error.append("errmsg", &*message);
            }
        }
    }
    Ok(Disposition::Reply)
}
