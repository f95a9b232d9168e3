//! Filters of services: sections with a name, such as `[filter.guard]`.

use super::choices::{FilterKindName, FilterMode, WhenExceeded, WhenTooFast};
use super::object::{Object, known};
use super::setting::{ConfigError, Setting, value};
use sql_filter::deny_rule::{DenyRule, TablePattern};
use sql_filter::mask_rule::MaskRule;
use sql_filter::rewrite::Rewrite;
use sql_filter::settings::{
    FirewallSettings, LimitsSettings, MaskingSettings, MirrorSettings, QueryLogSettings, RewritePattern,
    RewriteSettings,
};
use sql_filter::{FilterKind, FilterSettings, Mode};
use std::path::PathBuf;
use std::time::Duration;

const STATEMENTS_MAX: usize = 10_000;

/// The filters of the file, in its order.
#[derive(Clone, Debug, Default)]
pub struct Written {
    pub filters: Vec<Object<WrittenFilter>>,
    /// The filters of the service of `sql-listen`.
    pub of_sql_listen: Option<Setting<Vec<String>>>,
}

impl Written {
    /// Only a file has objects.
    pub fn over(self, beneath: Written) -> Written {
        Written {
            filters: [self.filters, beneath.filters].concat(),
            of_sql_listen: self.of_sql_listen.or(beneath.of_sql_listen),
        }
    }

    /// `servers`: the names of all servers.
    pub fn resolve(&self, servers: &[&str]) -> Result<Vec<FilterSettings>, ConfigError> {
        self.filters.iter().map(|object| filter(object, servers)).collect()
    }

    /// Returns the names of a service's filters, of which each must exist and be named once.
    pub fn known_filters(&self, names: &Setting<Vec<String>>) -> Result<Vec<String>, ConfigError> {
        for (number, name) in names.value.iter().enumerate() {
            known(names, name, "filter", self.filters.iter().map(|filter| filter.name.as_str()))?;
            if names.value[..number].contains(name) {
                return Err(names.refuse(format!("{name} is named twice")));
            }
        }
        Ok(names.value.clone())
    }
}

/// A filter as written.
#[derive(Clone, Debug, Default)]
pub struct WrittenFilter {
    pub kind: Option<Setting<FilterKindName>>,
    pub mode: Option<Setting<FilterMode>>,
    pub allow_list: Option<Setting<PathBuf>>,
    pub max_statements: Option<Setting<i64>>,
    pub deny: Option<Setting<Vec<DenyRule>>>,
    pub exempt_users: Option<Setting<Vec<String>>>,
    pub path: Option<Setting<PathBuf>>,
    pub literals: Option<Setting<bool>>,
    pub slow_ms: Option<Setting<i64>>,
    pub pattern: Option<Setting<String>>,
    pub statement: Option<Setting<String>>,
    pub replacement: Option<Setting<String>>,
    pub max_rows: Option<Setting<i64>>,
    pub max_bytes: Option<Setting<i64>>,
    pub when_exceeded: Option<Setting<WhenExceeded>>,
    pub statements_per_second: Option<Setting<i64>>,
    pub when_too_fast: Option<Setting<WhenTooFast>>,
    pub server: Option<Setting<String>>,
    pub mask: Option<Setting<Vec<MaskRule>>>,
    pub trusted: Option<Setting<Vec<TablePattern>>>,
}

/// A setting that is written, and the kinds of filters that have it.
struct OfKinds {
    name: &'static str,
    kinds: &'static [FilterKindName],
    setting: Setting<()>,
}

impl WrittenFilter {
    /// Returns the settings that are written.
    fn written(&self) -> Vec<OfKinds> {
        use FilterKindName::{Firewall, Limits, Masking, Mirror, QueryLog, Rewrite};
        const FIREWALL: &[FilterKindName] = &[Firewall];
        const QUERY_LOG: &[FilterKindName] = &[QueryLog];
        const LIMITS: &[FilterKindName] = &[Limits];
        const MASKING: &[FilterKindName] = &[Masking];
        const REWRITE: &[FilterKindName] = &[Rewrite];
        fn at<T>(
            setting: &Option<Setting<T>>,
            name: &'static str,
            kinds: &'static [FilterKindName],
        ) -> Option<OfKinds> {
            let origin = setting.as_ref()?.origin.clone();
            Some(OfKinds { name, kinds, setting: Setting { value: (), origin } })
        }
        let all = [
            at(&self.mode, "mode", FIREWALL),
            at(&self.allow_list, "allow-list", FIREWALL),
            at(&self.max_statements, "max-statements", FIREWALL),
            at(&self.deny, "deny", FIREWALL),
            at(&self.exempt_users, "exempt-users", &[Firewall, Limits, Masking]),
            at(&self.path, "path", QUERY_LOG),
            at(&self.literals, "literals", QUERY_LOG),
            at(&self.slow_ms, "slow-ms", QUERY_LOG),
            at(&self.pattern, "pattern", REWRITE),
            at(&self.statement, "statement", REWRITE),
            at(&self.replacement, "replacement", REWRITE),
            at(&self.server, "server", &[Mirror]),
            at(&self.mask, "mask", MASKING),
            at(&self.trusted, "trusted", MASKING),
            at(&self.max_rows, "max-rows", LIMITS),
            at(&self.max_bytes, "max-bytes", LIMITS),
            at(&self.when_exceeded, "when-exceeded", LIMITS),
            at(&self.statements_per_second, "statements-per-second", LIMITS),
            at(&self.when_too_fast, "when-too-fast", LIMITS),
        ];
        all.into_iter().flatten().collect()
    }
}

fn filter(object: &Object<WrittenFilter>, servers: &[&str]) -> Result<FilterSettings, ConfigError> {
    let kind = object.required(&object.written.kind, "kind")?.value;
    for OfKinds { name, kinds, setting } in object.written.written() {
        if !kinds.contains(&kind) {
            let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
            return Err(setting.refuse(format!(
                "{name} is no setting of a filter of kind {}, but of {}; leave it out",
                kind.name(),
                names.join(" and ")
            )));
        }
    }
    let kind = match kind {
        FilterKindName::Firewall => FilterKind::Firewall(firewall(object)?),
        FilterKindName::QueryLog => FilterKind::QueryLog(query_log(object)?),
        FilterKindName::Rewrite => FilterKind::Rewrite(rewrite(object)?),
        FilterKindName::Masking => FilterKind::Masking(MaskingSettings {
            rules: object.required(&object.written.mask, "mask")?.value.clone(),
            trusted: value(object.written.trusted.clone()).unwrap_or_default(),
            exempt_users: value(object.written.exempt_users.clone()).unwrap_or_default(),
        }),
        FilterKindName::Mirror => {
            let server = object.required(&object.written.server, "server")?;
            known(server, &server.value, "server", servers.iter().copied())?;
            FilterKind::Mirror(MirrorSettings { server: server.value.clone() })
        }
        FilterKindName::Limits => FilterKind::Limits(limits(object)?),
    };
    Ok(FilterSettings { name: object.name.clone(), kind })
}

fn firewall(object: &Object<WrittenFilter>) -> Result<FirewallSettings, ConfigError> {
    let written = &object.written;
    let settings = FirewallSettings {
        mode: match value(written.mode.clone()).unwrap_or_default() {
            FilterMode::Enforce => Mode::Enforce,
            FilterMode::Report => Mode::Report,
            FilterMode::Learn => Mode::Learn,
        },
        allow_list: value(written.allow_list.clone()),
        statements_max: count(&written.max_statements).unwrap_or(STATEMENTS_MAX),
        deny: value(written.deny.clone()).unwrap_or_default(),
        exempt_users: value(written.exempt_users.clone()).unwrap_or_default(),
    };
    if settings.allow_list.is_none() {
        if let Some(mode) = written.mode.as_ref().filter(|mode| mode.value == FilterMode::Learn) {
            return Err(mode.refuse("a filter that learns needs a file for its statements; set allow-list"));
        }
        if let Some(setting) = &written.max_statements {
            return Err(setting.refuse("max-statements limits the allow list; set allow-list, or leave it out"));
        }
        if settings.deny.is_empty() {
            return Err(object.refuse(format!("{} refuses nothing; set allow-list, or deny", object.name)));
        }
    }
    Ok(settings)
}

fn query_log(object: &Object<WrittenFilter>) -> Result<QueryLogSettings, ConfigError> {
    let written = &object.written;
    Ok(QueryLogSettings {
        path: object.required(&written.path, "path")?.value.clone(),
        shows_literals: value(written.literals.clone()).unwrap_or_default(),
        duration_min: count(&written.slow_ms).map_or(Duration::ZERO, |ms| Duration::from_millis(ms as u64)),
    })
}

fn rewrite(object: &Object<WrittenFilter>) -> Result<RewriteSettings, ConfigError> {
    let WrittenFilter { pattern, statement, replacement, .. } = &object.written;
    let (pattern, setting) = match (pattern, statement) {
        (Some(pattern), None) => (RewritePattern::Regex(pattern.value.clone()), pattern),
        (None, Some(statement)) => (RewritePattern::Statement(statement.value.clone()), statement),
        (Some(_), Some(statement)) => return Err(statement.refuse("pattern is set already; leave one of them out")),
        (None, None) => return Err(object.refuse(format!("{} has no pattern and no statement; set one", object.name))),
    };
    let replacement = object.required(replacement, "replacement")?.value.clone();
    let settings = RewriteSettings { pattern, replacement };
    Rewrite::new(object.name.clone(), &settings).map_err(|message| setting.refuse(message))?;
    Ok(settings)
}

fn limits(object: &Object<WrittenFilter>) -> Result<LimitsSettings, ConfigError> {
    let written = &object.written;
    let number = |setting: &Option<Setting<i64>>| count(setting).map(|number| number as u64);
    let settings = LimitsSettings {
        rows_max: number(&written.max_rows),
        bytes_max: number(&written.max_bytes),
        empties: value(written.when_exceeded.clone()).unwrap_or_default() == WhenExceeded::Empty,
        statements_per_second: count(&written.statements_per_second).map(|rate| rate as u32),
        waits: value(written.when_too_fast.clone()).unwrap_or_default() == WhenTooFast::Wait,
        exempt_users: value(written.exempt_users.clone()).unwrap_or_default(),
    };
    if let Some(when) = &written.when_exceeded {
        if settings.empties && settings.bytes_max.is_none() {
            return Err(when.refuse("rows are held until their number is known; limit their memory by max-bytes"));
        }
        if settings.rows_max.is_none() && settings.bytes_max.is_none() {
            return Err(when.refuse("there is no limit that could be exceeded; set max-rows or max-bytes"));
        }
    }
    if settings.statements_per_second.is_none() {
        if let Some(when) = &written.when_too_fast {
            return Err(when.refuse("there is no rate; set statements-per-second"));
        }
        if settings.rows_max.is_none() && settings.bytes_max.is_none() {
            let sentence = "limits nothing; set max-rows, max-bytes or statements-per-second";
            return Err(object.refuse(format!("{} {sentence}", object.name)));
        }
    }
    Ok(settings)
}

fn count(setting: &Option<Setting<i64>>) -> Option<usize> {
    setting.as_ref().and_then(|setting| usize::try_from(setting.value).ok())
}

#[cfg(test)]
mod tests;
