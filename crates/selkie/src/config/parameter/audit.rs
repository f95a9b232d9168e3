//! The settings of the audit log.

use super::Parameter;
use crate::config::setting::Setting;
use crate::config::value::{audit_events, audit_log, audit_on_failure, audit_users, boolean, text};
use std::path::PathBuf;

pub const PARAMETERS: &[Parameter] = &[
    Parameter {
        section: "audit",
        name: "log",
        flag: Some("--audit-log"),
        kind: "path or \"syslog\"",
        default: "# none",
        example: "\"/var/log/selkie/audit.log\"",
        about: "The file of the audit log, or `syslog`. Without it there is no audit log. An existing file is \
                continued. The command `logRotate` and the signal USR1 begin a new file.",
        read: read!(audit.log, audit_log),
    },
    Parameter {
        section: "audit",
        name: "key",
        flag: None,
        kind: "path",
        default: "# none",
        example: "\"/etc/selkie/audit.key\"",
        about: "A file with the key of the log's hashes, at least 16 bytes, which others must not be able to read. \
                Without a key, write access to the log is enough to compute the hashes anew.",
        read: read!(audit.key, |raw| text(raw, "a path").map(PathBuf::from)),
    },
    Parameter {
        section: "audit",
        name: "only",
        flag: None,
        kind: "list of kinds of events",
        default: "# all",
        example: "[\"authenticate\", \"authCheck\", \"createUser\"]",
        about: "The kinds of events that are logged.",
        read: read!(audit.only, audit_events),
    },
    Parameter {
        section: "audit",
        name: "except",
        flag: None,
        kind: "list of kinds of events",
        default: "# none",
        example: "[\"clientMetadata\"]",
        about: "Kinds of events that are not logged, even if `only` names them.",
        read: read!(audit.except, audit_events),
    },
    Parameter {
        section: "audit",
        name: "only-users",
        flag: None,
        kind: "list of users",
        default: "# all",
        example: "[\"admin.joe\"]",
        about: "The users whose events are logged, as `database.user`. A login counts for the user that it names. \
                Other events of connections without a login are not logged then.",
        read: read!(audit.only_users, audit_users),
    },
    Parameter {
        section: "audit",
        name: "except-users",
        flag: None,
        kind: "list of users",
        default: "# none",
        example: "[\"admin.monitoring\"]",
        about: "Users whose events are not logged.",
        read: read!(audit.except_users, audit_users),
    },
    Parameter {
        section: "audit",
        name: "authorization-success",
        flag: None,
        kind: "true or false",
        default: "false",
        example: "true",
        about: "Logs each command that was allowed as `authCheck`, reads and writes included. This is slow. Refused \
                commands are always logged.",
        read: read!(audit.authorization_success, boolean),
    },
    Parameter {
        section: "audit",
        name: "on-failure",
        flag: None,
        kind: "\"refuse\" or \"continue\"",
        default: "\"refuse\"",
        example: "\"continue\"",
        about: "The reaction while the log cannot be written, for instance because the disk is full: logins and \
                commands that would be logged are refused, or they go on. Events wait in memory; the number of those \
                beyond 16384 is logged later.",
        read: read!(audit.on_failure, audit_on_failure),
    },
    Parameter {
        section: "audit",
        name: "sync",
        flag: None,
        kind: "true or false",
        default: "false",
        example: "true",
        about: "Flushes events to the disk before the command's reply is sent, so that they survive a crash of the \
                machine. Without it they survive a crash of the process.",
        read: read!(audit.sync, boolean),
    },
];
