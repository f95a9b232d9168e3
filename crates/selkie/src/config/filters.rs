//! Filters of services: sections with a name, such as `[filter.guard]`.

use super::choices::{FilterKindName, FilterMode};
use super::object::{Object, known};
use super::setting::{ConfigError, Setting, value};
use sql_filter::deny_rule::DenyRule;
use sql_filter::rewrite::Rewrite;
use sql_filter::settings::{FirewallSettings, QueryLogSettings, RewritePattern, RewriteSettings};
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

    pub fn resolve(&self) -> Result<Vec<FilterSettings>, ConfigError> {
        self.filters.iter().map(filter).collect()
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
        use FilterKindName::{Firewall, QueryLog, Rewrite};
        const FIREWALL: &[FilterKindName] = &[Firewall];
        const QUERY_LOG: &[FilterKindName] = &[QueryLog];
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
            at(&self.exempt_users, "exempt-users", FIREWALL),
            at(&self.path, "path", QUERY_LOG),
            at(&self.literals, "literals", QUERY_LOG),
            at(&self.slow_ms, "slow-ms", QUERY_LOG),
            at(&self.pattern, "pattern", REWRITE),
            at(&self.statement, "statement", REWRITE),
            at(&self.replacement, "replacement", REWRITE),
        ];
        all.into_iter().flatten().collect()
    }
}

fn filter(object: &Object<WrittenFilter>) -> Result<FilterSettings, ConfigError> {
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

fn count(setting: &Option<Setting<i64>>) -> Option<usize> {
    setting.as_ref().and_then(|setting| usize::try_from(setting.value).ok())
}

#[cfg(test)]
mod tests;
