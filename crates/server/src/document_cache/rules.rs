//! Which commands' answers are kept.

/// By collection, and by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    pub collections: cache::CollectionRules,
    /// Commands whose answers are kept; all that can be, where there are none.
    pub commands: Vec<String>,
}

impl Rules {
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
        assert!(Rules::default().allow_command("find"));
        let counts = Rules { commands: vec!["count".to_owned()], ..Rules::default() };
        assert!(counts.allow_command("count") && !counts.allow_command("find"));
    }
}
