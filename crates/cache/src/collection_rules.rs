//! Selects the collections whose replies are cached.

/// Patterns of namespaces: `database.collection`, `database.*`, or `*`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CollectionRules {
    /// Only these are cached; empty: all.
    pub only: Vec<String>,
    /// These are not cached, even if `only` has them.
    pub except: Vec<String>,
}

impl CollectionRules {
    pub fn allow(&self, database: &str, collection: &str) -> bool {
        let named = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, database, collection));
        (self.only.is_empty() || named(&self.only)) && !named(&self.except)
    }
}

fn matches(pattern: &str, database: &str, collection: &str) -> bool {
    match pattern.split_once('.') {
        _ if pattern == "*" => true,
        Some((named, "*")) => named == database,
        Some((named, rest)) => named == database && rest == collection,
        None => pattern == database,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceptions_take_precedence() {
        let rules = |only: &[&str], except: &[&str]| {
            let list = |patterns: &[&str]| patterns.iter().map(|&pattern| pattern.to_owned()).collect();
            CollectionRules { only: list(only), except: list(except) }
        };
        assert!(CollectionRules::default().allow("a", "b"));
        assert!(rules(&["a.*"], &[]).allow("a", "b"));
        assert!(!rules(&["a.*"], &[]).allow("b", "b"));
        assert!(!rules(&["a.*"], &["a.b"]).allow("a", "b"));
        assert!(rules(&["a.*"], &["a.b"]).allow("a", "b.c"));
        assert!(!rules(&[], &["*"]).allow("a", "b"));
        assert!(rules(&["a.b.c"], &[]).allow("a", "b.c"));
    }
}
