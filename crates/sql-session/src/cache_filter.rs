//! Which answers are kept: by table, by user, by what the statement says.

use cache::CollectionRules as Collections;
use pcre2::bytes::{Regex, RegexBuilder};
use store::Namespace;

/// What answers are kept, as far as that is up to whoever runs the gateway.
#[derive(Debug, Default)]
pub struct Rules {
    /// Variables, the clock and chance do not keep an answer from being kept.
    pub assumes_cacheable: bool,
    pub collections: Collections,
    /// The users whose answers are kept; all, where there are none.
    pub only_users: Vec<String>,
    /// Not theirs, whatever `only_users` says.
    pub except_users: Vec<String>,
    /// The statements whose answers are kept; all that can be, where there are none.
    pub only_statements: Vec<Regex>,
    /// Not theirs, whatever `only_statements` says.
    pub except_statements: Vec<Regex>,
}

/// Compiles a pattern that statements are held against, in upper and lower case. The error says what is wrong with it.
pub fn pattern(text: &str) -> Result<Regex, String> {
    RegexBuilder::new().caseless(true).dotall(true).build(text).map_err(|error| error.to_string())
}

impl Rules {
    pub fn allow_user(&self, name: &str) -> bool {
        let has = |names: &[String]| names.iter().any(|other| other == name);
        (self.only_users.is_empty() || has(&self.only_users)) && !has(&self.except_users)
    }

    pub fn allow_statement(&self, sql: &[u8]) -> bool {
        // One that cannot be held against a pattern is left out.
        let fits = |patterns: &[Regex], otherwise: bool| {
            patterns.iter().any(|pattern| pattern.is_match(sql).unwrap_or(otherwise))
        };
        (self.only_statements.is_empty() || fits(&self.only_statements, false)) && !fits(&self.except_statements, true)
    }

    pub fn allow_tables(&self, tables: &[Namespace]) -> bool {
        tables.iter().all(|table| self.collections.allow(&table.database, &table.collection))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceptions_go_before() {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let rules = Rules {
            only_users: names(&["joe", "ann"]),
            except_users: names(&["ann"]),
            only_statements: vec![pattern("^select .* from cars").unwrap()],
            except_statements: vec![pattern("secret").unwrap()],
            ..Rules::default()
        };
        assert!(rules.allow_user("joe") && !rules.allow_user("ann") && !rules.allow_user("bob"));
        assert!(rules.allow_statement(b"SELECT a\n FROM cars") && rules.allow_statement(b"SELECT a,\nb FROM cars"));
        assert!(!rules.allow_statement(b"SELECT Secret FROM cars") && !rules.allow_statement(b"SELECT a FROM t"));
        assert!(Rules::default().allow_user("joe") && Rules::default().allow_statement(b"SELECT 1"));
        assert!(pattern("(").is_err());
    }
}
