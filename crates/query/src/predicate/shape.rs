//! The shape of a query: the part common to filters that differ only in their values. Index filters
//! are looked up by it.
//!
//! As in MongoDB, equality and `$in` are two shapes, and so are expressions with other options. The
//! order of conditions does not matter.

use super::Predicate;
use super::tree::{Node, Test};

impl Predicate {
    /// Returns the same text for all filters of a shape.
    pub fn shape(&self) -> String {
        of_node(&self.root)
    }
}

fn of_node(node: &Node) -> String {
    steps::step();
    match node {
        Node::And(all) => of_nodes("and", all),
        Node::Or(any) => of_nodes("or", any),
        Node::Nor(none) => of_nodes("nor", none),
        Node::Path { path, test } => of_test(path.as_str(), test),
        Node::Expression(expression) => format!("expr {}", expression.shape()),
        Node::Schema(schema) => format!("schema {schema:?}"),
        Node::Near(near) => format!("near {:?} {:?} {}", near.path.as_str(), near.metric, near.is_geo_json),
        Node::Text { .. } => "text".to_owned(),
        Node::KeyRange(_) => "range".to_owned(),
        Node::Never => "never".to_owned(),
    }
}

fn of_nodes(kind: &str, nodes: &[Node]) -> String {
    listed(kind, nodes.iter().map(of_node).collect())
}

fn listed(kind: &str, mut parts: Vec<String>) -> String {
    parts.sort_unstable_by(|a, b| {
        steps::step();
        a.cmp(b)
    });
    format!("{kind}[{}]", parts.join(","))
}

fn of_test(path: &str, test: &Test) -> String {
    steps::step();
    let kind = match test {
        Test::Collated(inner, _) => return of_test(path, inner),
        Test::And(all) => return listed("and", all.iter().map(|test| of_test(path, test)).collect()),
        Test::Not(inner) => return format!("not[{}]", of_test(path, inner)),
        Test::Equal(_) => "eq".to_owned(),
        Test::Less(_) => "lt".to_owned(),
        Test::LessOrEqual(_) => "lte".to_owned(),
        Test::Greater(_) => "gt".to_owned(),
        Test::GreaterOrEqual(_) => "gte".to_owned(),
        Test::In(list) => listed("in", list.regexes().iter().map(|regex| regex.options().to_owned()).collect()),
        Test::Regex(regex) => listed("regex", regex.options().chars().map(String::from).collect()),
        Test::Geometry(_) => "geo".to_owned(),
        Test::Exists => "exists".to_owned(),
        Test::Type(_) => "type".to_owned(),
        Test::Mod { .. } => "mod".to_owned(),
        Test::Bits(bits) => format!("{:?}", bits.condition),
        Test::Size(_) => "size".to_owned(),
        Test::ElementMatches(node) => format!("elements[{}]", of_node(node)),
        Test::ElementSatisfies(tests) => listed("values", tests.iter().map(|test| of_test("", test)).collect()),
        Test::Never => "never".to_owned(),
    };
    // Quoted, because paths may contain the separators.
    format!("{kind} {path:?}")
}

#[cfg(test)]
mod tests {
    use crate::{Context, Predicate};
    use shorthand::document;

    fn shape(filter: &str) -> String {
        Predicate::parse(document(filter).as_doc(), &Context::at(0)).expect("a filter").shape()
    }

    #[test]
    fn values_and_order_are_no_part_of_it() {
        assert_eq!(shape("{a: 1, b: 2}"), shape("{b: 'x', a: {$in: [3]}}"));
        assert_eq!(shape("{a: {$ne: 1}}"), shape("{a: {$not: {$eq: 2}}}"));
        assert_eq!(shape("{$or: [{a: 1}, {b: 1}]}"), shape("{$or: [{b: 2}, {a: 2}]}"));
    }

    #[test]
    fn of_expressions_comparisons_with_constants_count() {
        assert_eq!(shape("{$expr: {$eq: ['$a', 1]}}"), shape("{$expr: {$or: [{$eq: [2, '$a']}]}}"));
        assert_eq!(shape("{$expr: {$eq: ['$a', '$b']}}"), shape("{$expr: {$in: ['$c', [1]]}}"));
        assert_ne!(shape("{$expr: {$eq: ['$a', 1]}}"), shape("{$expr: {$gt: ['$a', 1]}}"));
        assert_ne!(shape("{$expr: {$eq: ['$a', 1]}}"), shape("{$expr: {$eq: ['$b', 1]}}"));
        assert_eq!(shape("{$expr: {$lt: [1, '$a']}}"), shape("{$expr: {$gt: ['$a', 1]}}"));
    }

    #[test]
    fn operators_paths_and_options_are() {
        assert_ne!(shape("{a: 1}"), shape("{b: 1}"));
        assert_ne!(shape("{a: {$gt: 1}}"), shape("{a: {$gte: 1}}"));
        assert_ne!(shape("{a: 1}"), shape("{a: {$in: [1, 2]}}"));
        assert_ne!(shape("{a: {$regex: 'x'}}"), shape("{a: {$regex: 'x', $options: 'i'}}"));
    }
}
