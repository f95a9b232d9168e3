//! `getParameter` and `setParameter`.
//!
//! Only parameters with an effect here are known; others fail as unknown parameters do in MongoDB.

use crate::arguments;
use crate::call::Call;
use crate::read::table_scan;
use crate::reply::NO_CODE;
use document::{DocWriter, Element, Value};
use error::{Error, Result};
use server::Server;
use server::log_level;
use std::sync::atomic::Ordering::Relaxed;

/// A server parameter.
struct Parameter {
    name: &'static str,
    at_startup: bool,
    read: fn(&Server, &str, &mut DocWriter<'_>),
    /// Changes the parameter; `None` if it cannot be changed at runtime.
    write: Option<fn(&Server, Element<'_>) -> Result<()>>,
}

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "authSchemaVersion",
        at_startup: false,
        read: |_, name, reply| reply.append(name, 5),
        write: None,
    },
    Parameter {
        name: "authenticationMechanisms",
        at_startup: true,
        read: |server, name, reply| {
            let mut names = reply.array(name);
            server.settings.login_mechanisms.iter().for_each(|mechanism| names.push(mechanism.name()));
        },
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
        read: |server, name, reply| reply.append(name, server.settings.test_commands),
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
        read: |_, name, reply| reply.append(name, server::logical_session::TIMEOUT_MINUTES),
        write: None,
    },
    Parameter {
        name: "logComponentVerbosity",
        at_startup: true,
        read: |_, name, reply| log_level::write(&mut reply.document(name)),
        write: Some(|_, field| log_level::set(field)),
    },
    Parameter {
        name: "logLevel",
        at_startup: true,
        read: |_, name, reply| reply.append(name, log_level::level()),
        write: Some(|_, field| match field.value() {
            value if value.kind().is_number() && value.to_i64().is_some_and(|level| level >= 0) => {
                log_level::set_level(value.to_i64().unwrap_or_default());
                Ok(())
            }
            value => {
                let shown = values::text::element(field.key(), value);
                Err(Error::bad_value(format!("Invalid value for logLevel: {shown}")))
            }
        }),
    },
    Parameter {
        name: "maxBSONDepth",
        at_startup: true,
        // MongoDB counts the levels below the outermost document.
        read: |_, name, reply| reply.append(name, document::DEPTH_MAX as i32 - 1),
        write: None,
    },
    Parameter {
        name: "maxNumActiveUserIndexBuilds",
        at_startup: true,
        read: |_, name, reply| reply.append(name, 3),
        write: None,
    },
    Parameter {
        name: "minSnapshotHistoryWindowInSeconds",
        at_startup: true,
        read: |server, name, reply| reply.append(name, server.snapshots.window_seconds() as i32),
        write: Some(|server, field| {
            server.snapshots.set_window_seconds(not_negative(field)?);
            Ok(())
        }),
    },
    Parameter {
        name: "notablescan",
        at_startup: true,
        read: |_, name, reply| reply.append(name, table_scan::are_forbidden()),
        write: Some(|_, field| {
            table_scan::forbid(field.value().is_truthy());
            Ok(())
        }),
    },
    Parameter { name: "quiet", at_startup: true, read: |_, name, reply| reply.append(name, false), write: None },
    Parameter {
        name: "requireApiVersion",
        at_startup: true,
        read: |_, name, reply| reply.append(name, false),
        write: None,
    },
    Parameter {
        name: "transactionLifetimeLimitSeconds",
        at_startup: true,
        read: |server, name, reply| reply.append(name, server.transactions.lifetime_seconds() as i32),
        write: Some(|server, field| {
            server.transactions.set_lifetime_seconds(positive(field, "greater than or equal to 1")?);
            Ok(())
        }),
    },
    Parameter {
        name: "ttlMonitorEnabled",
        at_startup: true,
        read: |server, name, reply| reply.append(name, server.parameters.ttl_monitor_enabled.load(Relaxed)),
        write: Some(|server, field| {
            server.parameters.ttl_monitor_enabled.store(field.value().is_truthy(), Relaxed);
            Ok(())
        }),
    },
    Parameter {
        name: "ttlMonitorSleepSecs",
        at_startup: true,
        read: |server, name, reply| {
            reply.append(name, server.parameters.ttl_monitor_sleep_seconds.load(Relaxed) as i32);
        },
        write: Some(|server, field| {
            server.parameters.ttl_monitor_sleep_seconds.store(positive(field, "greater than 0")?, Relaxed);
            Ok(())
        }),
    },
];

/// Reads a positive number of seconds. `required`: the requirement in MongoDB's words.
fn positive(field: Element<'_>, required: &str) -> Result<i64> {
    seconds(field, 1, required)
}

fn not_negative(field: Element<'_>) -> Result<i64> {
    seconds(field, 0, "greater than or equal to 0")
}

/// Reads a number of seconds as MongoDB does: fractions are truncated, and true is 1.
fn seconds(field: Element<'_>, min: i32, required: &str) -> Result<i64> {
    let name = field.key();
    let refuse = |reason: &str| Err(Error::bad_value(format!("Failed validating {name}: {reason}")));
    let number = match field.value() {
        Value::Boolean(flag) => i64::from(flag),
        value => match value.to_i64() {
            Some(number) => number,
            None => return refuse("Unable to coerce value to integral type"),
        },
    };
    match i32::try_from(number) {
        Err(_) => refuse("Out of bounds coercing to integral value"),
        Ok(seconds) if seconds < min => {
            let message = format!("Invalid value for parameter {name}: {number} is not {required}");
            Err(Error::bad_value(message))
        }
        Ok(seconds) => Ok(seconds.into()),
    }
}

fn not_a_number(field: Element<'_>) -> Error {
    Error::bad_value(format!("Invalid value for parameter {}: expected a number", field.key()))
}

pub fn get_parameter(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let server = &*call.worker.server;
    let (all, details) = selection(call.first())?;
    let names: Vec<&str> = call.fields().map(|field| field.key()).collect();
    let mut found = false;
    for parameter in PARAMETERS {
        if !all && !names.contains(&parameter.name) {
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

/// Reads the selection in the command's first field: all parameters, and with details. Fails with
/// 14 or 40415.
fn selection(first: Element<'_>) -> Result<(bool, bool)> {
    const WITHIN: &str = "getParameter";
    let options = match first.value() {
        Value::String("*") => return Ok((true, false)),
        Value::Document(options) => options,
        _ => return Ok((false, false)),
    };
    let (mut all, mut details) = (false, false);
    for option in options.elements() {
        let place = match option.key() {
            "allParameters" => &mut all,
            "showDetails" => &mut details,
            other => return Err(arguments::unknown_field(WITHIN, other)),
        };
        *place = !arguments::is_absent(option) && arguments::boolean_or_number(WITHIN, option)?;
    }
    Ok((all, details))
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
        // MongoDB returns the former value of the first parameter.
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
