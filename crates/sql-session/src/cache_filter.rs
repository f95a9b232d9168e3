//! Selects the results that are cached: by table, by user and by statement.

use cache::CollectionRules;
use pcre2::bytes::{Regex, RegexBuilder};
use store::Namespace;

/// The operator's rules for caching results of SQL clients.
#[derive(Debug, Default)]
pub struct CacheFilter {
    /// Variables and functions of the clock, of chance and of the session do not prevent caching.
    pub assume_pure: bool,
    pub collections: CollectionRules,
    /// The users whose results are cached; empty: all.
    pub only_users: Vec<String>,
    /// Users whose results are not cached, even if `only_users` has them.
    pub except_users: Vec<String>,
    /// Patterns of the statements whose results are cached; empty: all.
    pub only_statements: Vec<Regex>,
    /// Patterns of statements whose results are not cached, even if `only_statements` matches.
    pub except_statements: Vec<Regex>,
}

/// Compiles a pattern for statements, which ignores case. Fails with PCRE2's message.
pub fn pattern(text: &str) -> Result<Regex, String> {
    RegexBuilder::new().caseless(true).dotall(true).build(text).map_err(|error| error.to_string())
}

impl CacheFilter {
    pub fn allow_user(&self, name: &str) -> bool {
        let has = |names: &[String]| names.iter().any(|other| other == name);
        (self.only_users.is_empty() || has(&self.only_users)) && !has(&self.except_users)
    }

    pub fn allow_statement(&self, sql: &[u8]) -> bool {
        // A statement on which a pattern fails (with a limit of PCRE2's) is not cached.
        let matches = |patterns: &[Regex], otherwise: bool| {
            patterns.iter().any(|pattern| pattern.is_match(sql).unwrap_or(otherwise))
        };
        (self.only_statements.is_empty() || matches(&self.only_statements, false))
            && !matches(&self.except_statements, true)
    }

    pub fn allow_tables(&self, tables: &[Namespace]) -> bool {
        tables.iter().all(|table| self.collections.allow(&table.database, &table.collection))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceptions_take_precedence() {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let rules = CacheFilter {
            only_users: names(&["joe", "ann"]),
            except_users: names(&["ann"]),
            only_statements: vec![pattern("^select .* from cars").unwrap()],
            except_statements: vec![pattern("secret").unwrap()],
            ..CacheFilter::default()
        };
        assert!(rules.allow_user("joe") && !rules.allow_user("ann") && !rules.allow_user("bob"));
        assert!(rules.allow_statement(b"SELECT a\n FROM cars") && rules.allow_statement(b"SELECT a,\nb FROM cars"));
        assert!(!rules.allow_statement(b"SELECT Secret FROM cars") && !rules.allow_statement(b"SELECT a FROM t"));
        assert!(CacheFilter::default().allow_user("joe") && CacheFilter::default().allow_statement(b"SELECT 1"));
        assert!(pattern("(").is_err());
    }
}
