//! The initial document of an upsert: the fields that the filter requires to be equal to a value.

use super::replace::{check_id, write_id_first};
use super::target::{levels, nesting_too_deep};
use document::{DEPTH_STORED_MAX, Doc, ObjectId, Value};
use error::{Code, Error, Result};
use hashbrown::HashSet;
use query::Predicate;
use query::predicate::{Node, Test};
use steps::Counted;

type Equality<'p> = (&'p str, Value<'p>);

/// Writes the document of the predicate's equalities. For a replacement, it contains the `_id`
/// only.
pub(super) fn write_equalities(predicate: &Predicate, only_id: bool, out: &mut Vec<u8>) -> Result<()> {
    let mut equalities = Vec::new();
    collect_equalities(predicate.root(), &mut equalities)?;
    if only_id {
        equalities.retain(|(path, _)| *path == "_id" || path.starts_with("_id."));
        if let Some((path, _)) = equalities.iter().find(|(path, _)| *path != "_id") {
            return Err(Error::new(
                Code(111),
                format!("field at '_id' must be exactly specified, field at sub-path '{path}'found"),
            ));
        }
    }
    equalities.sort_by_key(|(path, _)| {
        steps::step();
        *path
    });
    check_conflicts(&equalities)?;
    if equalities.iter().any(|(path, _)| path.is_empty()) {
        return Err(Error::new(Code(20), "Cannot call setValue on the root object"));
    }
    write_level(&equalities, 0, 1, out)
}

/// Collects the equalities that hold in every matching document.
fn collect_equalities<'p>(node: &'p Node, equalities: &mut Vec<Equality<'p>>) -> Result<()> {
    match node {
        Node::And(branches) => branches.iter().counted().try_for_each(|branch| collect_equalities(branch, equalities)),
        Node::Or(branches) if branches.len() == 1 => collect_equalities(&branches[0], equalities),
        Node::Path { path, test } => {
            collect_from_test(path.as_str(), test, equalities);
            Ok(())
        }
        Node::Expression(_) => Err(Error::new(Code(224), "$expr is not allowed in the query predicate for an upsert")),
        _ => Ok(()),
    }
}

fn collect_from_test<'p>(path: &'p str, test: &'p Test, equalities: &mut Vec<Equality<'p>>) {
    match test {
        Test::Equal(value) => equalities.push((path, value.as_value())),
        Test::Collated(test, _) => collect_from_test(path, test, equalities),
        _ => {}
    }
}

/// Fails if a path occurs twice or is a prefix of another. `equalities` must be sorted by path.
fn check_conflicts(equalities: &[Equality<'_>]) -> Result<()> {
    let mut before = HashSet::new();
    for (path, _) in equalities {
        steps::step();
        // The shortest prefix first, because it sorts first.
        let mut prefixes = path.match_indices('.').take(DEPTH_STORED_MAX).map(|(end, _)| &path[..end]);
        let conflict = match prefixes.find(|above| before.contains(above)) {
            Some(other) => format!("both paths '{path}' and '{other}' are matched"),
            None if before.insert(*path) => continue,
            None => format!("path '{path}' is matched twice"),
        };
        return Err(Error::new(Code::NOT_SINGLE_VALUE_FIELD, format!("cannot infer query fields to set, {conflict}")));
    }
    Ok(())
}

/// Writes a document of the equalities, whose paths agree up to byte `from`, at nesting level
/// `depth`.
fn write_level(equalities: &[Equality<'_>], from: usize, depth: usize, out: &mut Vec<u8>) -> Result<()> {
    if depth > DEPTH_STORED_MAX {
        return Err(nesting_too_deep());
    }
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    let mut rest = equalities;
    while let Some(&(path, value)) = rest.first() {
        steps::step();
        let name = path[from..].split('.').next().unwrap_or_default();
        let end = from + name.len();
        if end == path.len() {
            if depth + levels(value) > DEPTH_STORED_MAX {
                return Err(nesting_too_deep());
            }
            super::write::write_element(name.as_bytes(), value, out);
            rest = &rest[1..];
            continue;
        }
        let together = rest.iter().counted().take_while(|(other, _)| other.starts_with(&path[..=end])).count();
        super::write::write_header(out, document::Kind::Document, name.as_bytes());
        write_level(&rest[..together], end + 1, depth + 1, out)?;
        rest = &rest[together..];
    }
    out.push(0);
    let length = (out.len() - start) as i32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    Ok(())
}

/// Writes the document to insert: `_id` first, `new_id` if it has none.
pub(super) fn write_with_id(document: Doc<'_>, new_id: ObjectId, out: &mut Vec<u8>) -> Result<()> {
    if let Some(id) = document.get("_id") {
        check_id(id)?;
    }
    write_id_first(document, Value::ObjectId(new_id), out);
    Ok(())
}
