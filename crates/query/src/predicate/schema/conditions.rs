//! Schemas as conditions of a filter: required fields can be tested on their own.

use super::{Rule, Schema};
use crate::predicate::tree::{Node, Test};
use document::path::Path;
use std::sync::Arc;

impl Schema {
    /// Returns a document's schema as conditions: on required fields, and a schema of the rest.
    pub fn conditions(&self) -> Vec<Node> {
        let (mut all, mut rest) = (Vec::new(), Vec::new());
        for rule in &self.rules {
            match rule.about_existence() {
                Some(Node::And(parts)) => all.extend(parts),
                Some(condition) => all.push(condition),
                None => rest.push(rule.clone()),
            }
        }
        if !rest.is_empty() {
            all.insert(0, Node::Schema(Arc::new(Schema { rules: rest })));
        }
        all
    }

    fn about_existence(&self) -> Option<Node> {
        self.rules.iter().map(Rule::about_existence).collect::<Option<Vec<_>>>().map(Node::And)
    }
}

impl Rule {
    /// Returns the schema as a condition on required fields, if it has no other rules.
    fn about_existence(&self) -> Option<Node> {
        let each = |schemas: &[Schema]| schemas.iter().map(Schema::about_existence).collect::<Option<Vec<_>>>();
        let exists = |path: &Path| Node::Path { path: path.clone(), test: Test::Exists };
        Some(match self {
            Rule::Required(paths) => Node::And(paths.iter().map(exists).collect()),
            Rule::AllOf(schemas) => Node::And(each(schemas)?),
            Rule::AnyOf(schemas) => Node::Or(each(schemas)?),
            Rule::Not(schema) => Node::Nor(vec![schema.about_existence()?]),
            _ => return None,
        })
    }
}
