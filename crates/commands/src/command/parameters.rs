//! `getParameter` and `setParameter`.
//!
//! Only parameters that mean something here are known; asking for others is answered as MongoDB answers to names it does not know.

use crate::arguments;
use crate::dispatch::Call;
use crate::reply::NO_CODE;
use crate::server::Server;
use document::{DocWriter, Element, Value};
use error::{Error, Result};
use std::sync::atomic::Ordering::Relaxed;

/// A server parameter.
struct Parameter {
    name: &'static str,
    at_startup: bool,
    read: fn(&Server, &str, &mut DocWriter<'_>),
    /// `None`: cannot be changed at runtime.
    write: Option<fn(&Server, Element<'_>) -> Result<()>>,
}

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "authenticationMechanisms",
        at_startup: true,
        read: |_, name, reply| drop(reply.array(name)),
        write: None,
    },
    Parameter {
        name: "cursorTimeoutMillis",
        at_startup: true,
        read: |server, name, reply| reply.append(name, server.parameters.cursor_timeout_ms.load(Relaxed)),
        write: Some(|server, field| {
            let milliseconds = arguments::number_to_i64(field.value()).ok_or_else(|| not_a_number(field))?;
            server.parameters.cursor_timeout_ms.store(milliseconds, Relaxed);
            Ok(())
        }),
    },
    Parameter {
        name: "enableTestCommands",
        at_startup: true,
        read: |_, name, reply| reply.append(name, false),
        write: None,
    },
    Parameter {
        name: "featureCompatibilityVersion",
        at_startup: false,
        read: |_, name, reply| reply.document(name).append("version", "6.0"),
        write: None,
    },
    Parameter {
        name: "localLogicalSessionTimeoutMinutes",
        at_startup: true,
        read: |_, name, reply| reply.append(name, crate::logical_session::TIMEOUT_MINUTES),
        write: None,
    },
    Parameter {
        name: "maxBSONDepth",
        at_startup: true,
        // The server counts the levels below the outermost document.
        read: |_, name, reply| reply.append(name, document::DEPTH_MAX as i32 - 1),
        write: None,
    },
    Parameter {
        name: "maxNumActiveUserIndexBuilds",
        at_startup: true,
        read: |_, name, reply| reply.append(name, 3),
        write: None,
    },
    Parameter { name: "quiet", at_startup: true, read: |_, name, reply| reply.append(name, false), write: None },
    Parameter {
        name: "requireApiVersion",
        at_startup: true,
        read: |_, name, reply| reply.append(name, false),
        write: None,
    },
];

fn not_a_number(field: Element<'_>) -> Error {
    Error::bad_value(format!("Invalid value for parameter {}: expected a number", field.key()))
}

pub fn get_parameter(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let server = &*call.worker.server;
    let (all, mut details, mut at_startup, mut at_runtime) = selection(call.first())?;
    let mut wanted = Vec::new();
    for field in call.fields() {
        match field.key() {
            "allParameters" => {}
            "showDetails" => details = field.value().is_truthy(),
            "setAt" => match field.value().as_str() {
                Some("startup") => at_startup = true,
                Some("runtime") => at_runtime = true,
                _ => {}
            },
            name => wanted.push(name),
        }
    }
    let all = all || call.fields().any(|field| field.key() == "allParameters" && field.value().is_truthy());
    let mut found = false;
    for parameter in PARAMETERS {
        if !all && !wanted.contains(&parameter.name) {
            continue;
        }
        if (at_startup && !parameter.at_startup) || (at_runtime && parameter.write.is_none()) {
            continue;
        }
        found = true;
        if details {
            let mut entry = reply.document(parameter.name);
            (parameter.read)(server, "value", &mut entry);
            entry.append("settableAtRuntime", parameter.write.is_some());
            entry.append("settableAtStartup", parameter.at_startup);
        } else {
            (parameter.read)(server, parameter.name, reply);
        }
    }
    if !found {
        return Err(Error::new(NO_CODE, "no option found to get"));
    }
    Ok(())
}

/// How the command's own value selects: `"*"`, or a document of options. All, with details, at startup, at runtime.
fn selection(first: Element<'_>) -> Result<(bool, bool, bool, bool)> {
    Ok(match first.value() {
        Value::String("*") => (true, false, false, false),
        Value::Document(options) => (
            options.get("allParameters").is_some_and(Value::is_truthy),
            options.get("showDetails").is_some_and(Value::is_truthy),
            options.get("setAt") == Some(Value::String("startup")),
            options.get("setAt") == Some(Value::String("runtime")),
        ),
        _ => (false, false, false, false),
    })
}

pub fn set_parameter(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let server = &*call.worker.server;
    if call.fields().next().is_none() {
        return Err(Error::new(NO_CODE, "no option found to set, use help:true to see options "));
    }
    if let Some(other) = call.fields().find(|field| PARAMETERS.iter().all(|parameter| parameter.name != field.key())) {
        return Err(unrecognized(other.key()));
    }
    for (index, field) in call.fields().enumerate() {
        let parameter = PARAMETERS.iter().find(|parameter| parameter.name == field.key());
        let parameter = parameter.ok_or_else(|| unrecognized(field.key()))?;
        let Some(write) = parameter.write else {
            let message = format!("not allowed to change [{}] at runtime", field.key());
            return Err(Error::new(error::Code::ILLEGAL_OPERATION, message));
        };
        // MongoDB tells what the first of them was before.
        if index == 0 {
            (parameter.read)(server, "was", reply);
        }
        write(server, field)?;
    }
    Ok(())
}

fn unrecognized(name: &str) -> Error {
    let message = format!("attempted to set unrecognized parameter [{name}], use help:true to see options ");
    Error::new(NO_CODE, message)
}
