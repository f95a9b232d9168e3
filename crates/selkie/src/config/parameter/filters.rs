//! The settings of filters.

use super::Parameter;
use crate::config::filters::WrittenFilter;
use crate::config::setting::Setting;
use crate::config::value::{boolean, deny_rules, filter_kind, filter_mode, integer, path, text, users};

/// `[filter.NAME]`.
pub const FILTER: &[Parameter<WrittenFilter>] = &[
    Parameter {
        section: "filter",
        name: "kind",
        flag: None,
        kind: "firewall, query-log or rewrite",
        default: "# none: it must be set",
        example: "\"firewall\"",
        about: "What the filter does. Each kind has settings of its own: another kind's are errors.",
        read: read!(kind, filter_kind),
    },
    Parameter {
        section: "filter",
        name: "mode",
        flag: None,
        kind: "enforce, report or learn",
        default: "\"enforce\"",
        example: "\"learn\"",
        about: "Of a `firewall`: refuses statements that break its rules (`enforce`), or logs and counts them \
                (`report`). `learn` adds all statements to the allow list, and enforces the rules of `deny`.",
        read: read!(mode, filter_mode),
    },
    Parameter {
        section: "filter",
        name: "allow-list",
        flag: None,
        kind: "path",
        default: "# none: all statements are allowed",
        example: "\"/var/lib/selkie/app.statements\"",
        about: "Of a `firewall`: the file with the statements that are allowed, a canonical form per line.",
        read: read!(allow_list, path),
    },
    Parameter {
        section: "filter",
        name: "max-statements",
        flag: None,
        kind: "number, from 1 to 1000000",
        default: "10000",
        example: "500",
        about: "Of a `firewall`: the most statements in the allow list.",
        read: read!(max_statements, |raw| integer(raw, 1, 1_000_000)),
    },
    Parameter {
        section: "filter",
        name: "deny",
        flag: None,
        kind: "list of rules",
        default: "# none",
        example: "[\"table d.salaries user joe\", \"column d.people.ssn\", \"user guest time 18:00-08:00\"]",
        about: "Of a `firewall`: rules by which statements are refused. A rule has conditions, which must all hold: \
                `table`, `column`, `user`, and `time` of day in UTC, each with its value.",
        read: read!(deny, deny_rules),
    },
    Parameter {
        section: "filter",
        name: "exempt-users",
        flag: None,
        kind: "list of users",
        default: "# none",
        example: "[\"admin\"]",
        about: "Of a `firewall`: users whose statements are not checked.",
        read: read!(exempt_users, users),
    },
    Parameter {
        section: "filter",
        name: "path",
        flag: None,
        kind: "path",
        default: "# none: it must be set for a query-log",
        example: "\"/var/log/selkie/queries.json\"",
        about: "Of a `query-log`: the file to which a line is appended for each statement. It is opened again on SIGHUP.",
        read: read!(path, path),
    },
    Parameter {
        section: "filter",
        name: "literals",
        flag: None,
        kind: "true or false",
        default: "false",
        example: "true",
        about: "Of a `query-log`: whether statements are written as they are, with the values in them. Otherwise their \
                canonical form is written, which has question marks instead.",
        read: read!(literals, boolean),
    },
    Parameter {
        section: "filter",
        name: "slow-ms",
        flag: None,
        kind: "milliseconds, from 0",
        default: "0",
        example: "100",
        about: "Of a `query-log`: faster statements are left out, unless they fail.",
        read: read!(slow_ms, |raw| integer(raw, 0, 86_400_000)),
    },
    Parameter {
        section: "filter",
        name: "pattern",
        flag: None,
        kind: "regular expression",
        default: "# none",
        example: "\"^SELECT\"",
        about: "Of a `rewrite`: a regular expression of PCRE2, which ignores case. Each match in a statement is replaced.",
        read: read!(pattern, |raw| text(raw, "a regular expression")),
    },
    Parameter {
        section: "filter",
        name: "statement",
        flag: None,
        kind: "statement",
        default: "# none",
        example: "\"SELECT a FROM t WHERE b = ?\"",
        about: "Of a `rewrite`, instead of `pattern`: statements with the canonical form of this one are replaced as a \
                whole.",
        read: read!(statement, |raw| text(raw, "a statement")),
    },
    Parameter {
        section: "filter",
        name: "replacement",
        flag: None,
        kind: "text",
        default: "# none: it must be set for a rewrite",
        example: "\"SELECT a FROM u WHERE b = $1\"",
        about: "Of a `rewrite`: the new text. `$1` is the first group of `pattern`, or the first literal of `statement`. \
                `$$` is a dollar sign.",
        read: read!(replacement, |raw| text(raw, "a text")),
    },
];
