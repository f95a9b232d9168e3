//! Predicates in the form in which `explain` shows filters: `{a: {$eq: 1}}`.
//!
//! Parts whose original form the tree does not retain (expressions, areas, schemas) are copied from
//! the filter it was parsed from.

use super::Predicate;
use super::bits::BitCondition;
use super::in_list::InList;
use super::tree::{Node, Test};
use super::type_set::TypeSet;
use document::{ArrayWriter, Doc, DocBuf, DocWriter, Kind, Value};
use steps::Counted;

impl Predicate {
    /// Returns the filter with all operators explicit. `written` is the filter it was parsed from.
    pub fn describe(&self, written: Doc<'_>) -> DocBuf {
        self.describe_rest(written, |_, _| false)
    }

    /// Returns the conditions of the conjunction that are not yet `met`; an empty document if none
    /// is left.
    pub fn describe_rest(&self, written: Doc<'_>, met: impl Fn(&str, &Test) -> bool) -> DocBuf {
        let is_left = |node: &&Node| match node {
            Node::Path { path, test } => !met(path.as_str(), test),
            Node::KeyRange(_) => false,
            _ => true,
        };
        let all = match &self.root {
            Node::And(all) => all.as_slice(),
            one => std::slice::from_ref(one),
        };
        let left: Vec<&Node> = all.iter().filter(is_left).collect();
        DocBuf::build(|writer| match left.as_slice() {
            [] => {}
            [one] => write(one, written, writer),
            several => write_list("$and", several, written, writer),
        })
    }
}

fn write_list<'n>(
    operator: &str,
    nodes: impl IntoIterator<Item = &'n &'n Node>,
    written: Doc<'_>,
    writer: &mut DocWriter<'_>,
) {
    let mut array = writer.array(operator);
    nodes.into_iter().for_each(|node| write(node, written, &mut array.document()));
}

fn write(node: &Node, written: Doc<'_>, writer: &mut DocWriter<'_>) {
    steps::step();
    let list = |operator: &str, nodes: &[Node], writer: &mut DocWriter<'_>| {
        write_list(operator, &nodes.iter().collect::<Vec<_>>(), written, writer);
    };
    match node {
        Node::And(nodes) if nodes.is_empty() => {}
        Node::And(nodes) => list("$and", nodes, writer),
        Node::Or(nodes) => list("$or", nodes, writer),
        Node::Nor(nodes) => list("$nor", nodes, writer),
        Node::Path { path, test } => write_condition(path.as_str(), test, written, writer),
        Node::Expression(_) => copy("$expr", written, writer),
        Node::Schema(_) => copy("$jsonSchema", written, writer),
        Node::Near(near) => copy(near.path.as_str(), written, writer),
        Node::Text { search, .. } => {
            let mut text = writer.document("$text");
            text.append("$search", search.text.as_str());
            text.append("$language", search.language_name.as_str());
            text.append("$caseSensitive", search.case_sensitive());
            text.append("$diacriticSensitive", search.diacritic_sensitive());
        }
        Node::KeyRange(_) => {}
        Node::Never => writer.append("$alwaysFalse", 1),
    }
}

/// Copies the value of a key from the filter, at any depth.
fn copy(key: &str, written: Doc<'_>, writer: &mut DocWriter<'_>) {
    if let Some(value) = find(key, written) {
        writer.append(key, value);
    }
}

fn find<'d>(key: &str, document: Doc<'d>) -> Option<Value<'d>> {
    document.get(key).or_else(|| {
        document.values().counted().find_map(|value| match value {
            Value::Document(inner) | Value::Array(inner) => find(key, inner),
            _ => None,
        })
    })
}

fn write_condition(path: &str, test: &Test, written: Doc<'_>, writer: &mut DocWriter<'_>) {
    match test {
        Test::Geometry(_) => copy(path, written, writer),
        Test::Collated(inner, _) => write_condition(path, inner, written, writer),
        Test::Never => writer.append("$alwaysFalse", 1),
        Test::Not(inner) => {
            let mut condition = writer.document(path);
            write_test(inner, written, &mut condition.document("$not"));
        }
        _ => write_test(test, written, &mut writer.document(path)),
    }
}

fn write_test(test: &Test, written: Doc<'_>, writer: &mut DocWriter<'_>) {
    steps::step();
    match test {
        Test::Equal(value) => writer.append("$eq", value),
        Test::Less(value) => writer.append("$lt", value),
        Test::LessOrEqual(value) => writer.append("$lte", value),
        Test::Greater(value) => writer.append("$gt", value),
        Test::GreaterOrEqual(value) => writer.append("$gte", value),
        Test::In(list) => write_values(list, writer.array("$in")),
        Test::Collated(inner, _) => write_test(inner, written, writer),
        Test::Regex(regex) => {
            writer.append("$regex", regex.pattern());
            if !regex.options().is_empty() {
                writer.append("$options", regex.options());
            }
        }
        Test::Exists => writer.append("$exists", true),
        Test::Type(types) => write_types(*types, writer.array("$type")),
        Test::Mod { divisor, remainder } => {
            let mut array = writer.array("$mod");
            array.push(*divisor);
            array.push(*remainder);
        }
        Test::Bits(bits) => {
            let mut array = writer.array(match bits.condition {
                BitCondition::AllSet => "$bitsAllSet",
                BitCondition::AllClear => "$bitsAllClear",
                BitCondition::AnySet => "$bitsAnySet",
                BitCondition::AnyClear => "$bitsAnyClear",
            });
            bits.positions().iter().counted().for_each(|position| array.push(*position as i32));
        }
        Test::Size(size) => match i32::try_from(*size) {
            Ok(size) => writer.append("$size", size),
            Err(_) => writer.append("$size", *size),
        },
        Test::ElementMatches(node) => write(node, written, &mut writer.document("$elemMatch")),
        Test::ElementSatisfies(tests) => {
            let mut inner = writer.document("$elemMatch");
            tests.iter().for_each(|test| write_test(test, written, &mut inner));
        }
        Test::Not(inner) => write_test(inner, written, &mut writer.document("$not")),
        Test::And(tests) => tests.iter().for_each(|test| write_test(test, written, writer)),
        Test::Geometry(_) => {}
        Test::Never => writer.append("$alwaysFalse", 1),
    }
}

fn write_values(list: &InList, mut array: ArrayWriter<'_>) {
    list.values().iter().counted().for_each(|value| array.push(value));
    list.regexes().iter().counted().for_each(|regex| array.push(&regex.to_value()));
}

fn write_types(types: TypeSet, mut array: ArrayWriter<'_>) {
    for kind in Kind::ALL.into_iter().filter(|kind| types.contains(*kind)) {
        array.push(match kind {
            Kind::MinKey => -1,
            kind => kind as i32,
        });
    }
}
