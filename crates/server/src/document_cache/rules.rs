//! The rules of which replies are cached.

/// The collections and commands whose replies are cached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheRules {
    pub collections: cache::CollectionRules,
    /// The commands whose replies are cached; empty for all that can be.
    pub commands: Vec<String>,
}

impl CacheRules {
    pub fn allow(&self, database: &str, collection: &str) -> bool {
        self.collections.allow(database, collection)
    }

    pub fn allow_command(&self, name: &str) -> bool {
        self.commands.is_empty() || self.commands.iter().any(|command| command == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_allowed_by_name() {
        assert!(CacheRules::default().allow_command("find"));
        let counts = CacheRules { commands: vec!["count".to_owned()], ..CacheRules::default() };
        assert!(counts.allow_command("count") && !counts.allow_command("find"));
    }
}
