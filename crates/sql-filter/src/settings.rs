//! What the configuration says about filters. Filters with equal settings do the same.

use crate::deny_rule::{DenyRule, TablePattern};
use crate::mask_rule::MaskRule;
use std::path::PathBuf;
use std::time::Duration;

/// A filter with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterSettings {
    pub name: String,
    pub kind: FilterKind,
}

/// The kind of a filter, with the settings of that kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterKind {
    Firewall(FirewallSettings),
    QueryLog(QueryLogSettings),
    Rewrite(RewriteSettings),
    Limits(LimitsSettings),
    Masking(MaskingSettings),
    Mirror(MirrorSettings),
}

/// What a filter does with a statement that breaks its rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Refuses it.
    #[default]
    Enforce,
    /// Logs and counts it, and lets it pass.
    Report,
    /// Adds its form to the allow list.
    Learn,
}

/// The settings of a firewall.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FirewallSettings {
    pub mode: Mode,
    /// The file with the canonical forms of the statements that are allowed; `None`: all are.
    pub allow_list: Option<PathBuf>,
    /// The most forms in the allow list.
    pub statements_max: usize,
    pub deny: Vec<DenyRule>,
    /// Users whose statements are not checked.
    pub exempt_users: Vec<String>,
}

/// The settings of a query log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueryLogSettings {
    pub path: PathBuf,
    /// Statements are written with their literals.
    pub shows_literals: bool,
    /// Faster statements are not written, unless they fail.
    pub duration_min: Duration,
}

/// The settings of a rule of rewriting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RewriteSettings {
    pub pattern: RewritePattern,
    /// The new text, with `$1` for a group of the expression or a literal of the statement.
    pub replacement: String,
}

/// The settings of limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitsSettings {
    /// The most rows of a result set.
    pub rows_max: Option<u64>,
    /// The most bytes of a result set's rows.
    pub bytes_max: Option<u64>,
    /// A result set that exceeds a limit is empty. Otherwise it ends with an error.
    pub empties: bool,
    pub statements_per_second: Option<u32>,
    /// Statements beyond the rate wait. Otherwise they are refused.
    pub waits: bool,
    /// Users without limits.
    pub exempt_users: Vec<String>,
}

/// The settings of masking.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MaskingSettings {
    pub rules: Vec<MaskRule>,
    /// Views and stored routines that clients may use: they show no masked column.
    pub trusted: Vec<TablePattern>,
    /// Users that see the values.
    pub exempt_users: Vec<String>,
}

/// The settings of a mirror.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MirrorSettings {
    /// The name of the second server.
    pub server: String,
}

/// The statements that are rewritten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RewritePattern {
    /// Each match of a regular expression is replaced.
    Regex(String),
    /// Statements with the canonical form of this one are replaced.
    Statement(String),
}
