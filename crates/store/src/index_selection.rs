//! The indexes that a `dropIndexes` selects, and the errors for a selection that matches none.

use crate::duplicate::write_document;
use crate::index_rules::{is_id_key, same_key};
use crate::{IndexSelection, IndexSpec};
use document::DocBuf;
use error::{Code, Error, Result};

/// Returns the positions of the selected ones among a collection's secondary indexes. Fails with 72
/// for the index on `_id`, 27 for one that does not exist or is named twice, and 181 for a key
/// pattern that several have.
pub fn select(indexes: &[&IndexSpec], which: &IndexSelection) -> Result<Vec<usize>> {
    match which {
        IndexSelection::All => Ok((0..indexes.len()).collect()),
        IndexSelection::Names(names) => by_names(indexes, names),
        IndexSelection::Key(key) => Ok(vec![by_key(indexes, key)?]),
    }
}

fn is_id() -> Error {
    Error::new(Code::INVALID_OPTIONS, "cannot drop _id index")
}

fn by_names(indexes: &[&IndexSpec], names: &[String]) -> Result<Vec<usize>> {
    let mut selected = Vec::with_capacity(names.len());
    for name in names {
        if name == "_id_" {
            return Err(is_id());
        }
        match indexes.iter().position(|index| index.name == *name) {
            Some(position) if !selected.contains(&position) => selected.push(position),
            _ => return Err(Error::new(Code::INDEX_NOT_FOUND, format!("index not found with name [{name}]"))),
        }
    }
    Ok(selected)
}

fn by_key(indexes: &[&IndexSpec], key: &DocBuf) -> Result<usize> {
    if is_id_key(key.as_doc()) {
        return Err(is_id());
    }
    let mut found =
        indexes.iter().enumerate().filter(|(_, index)| same_key(index.key.as_doc(), key.as_doc())).map(|it| it.0);
    match (found.next(), found.next()) {
        (None, _) => Err(Error::new(Code::INDEX_NOT_FOUND, format!("can't find index with key: {}", displayed(key)))),
        (Some(position), None) => Ok(position),
        (Some(first), Some(second)) => {
            let spec = |position: usize| indexes.get(position).map(|index| displayed(&index.spec)).unwrap_or_default();
            let message = format!(
                "{} indexes found for key: {}, identify by name instead. Conflicting indexes: {}, {}",
                found.count() + 2,
                displayed(key),
                spec(first),
                spec(second)
            );
            Err(Error::new(Code::AMBIGUOUS_INDEX_KEY_PATTERN, message))
        }
    }
}

fn displayed(document: &DocBuf) -> String {
    let mut text = String::new();
    write_document(document.as_doc(), &mut text);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::doc;

    fn index(name: &str, key: DocBuf) -> IndexSpec {
        let spec = doc! { "v": 2, "key": &key, "name": name };
        IndexSpec { name: name.into(), key, unique: false, sparse: false, spec }
    }

    fn check(which: IndexSelection, expected: Result<Vec<usize>, i32>) {
        let indexes = [index("a", doc! { "a": 1 }), index("b", doc! { "b": 1 }), index("b2", doc! { "b": 1.0 })];
        let indexes: Vec<&IndexSpec> = indexes.iter().collect();
        assert_eq!(select(&indexes, &which).map_err(|error| error.code().0), expected, "{which:?}");
    }

    fn names(names: &[&str]) -> IndexSelection {
        IndexSelection::Names(names.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn indexes_are_selected_by_name_or_by_a_key_that_only_one_has() {
        check(IndexSelection::All, Ok(vec![0, 1, 2]));
        check(names(&["b2", "a"]), Ok(vec![2, 0]));
        check(names(&["a", "a"]), Err(27));
        check(names(&["c"]), Err(27));
        check(names(&["_id_"]), Err(72));
        check(IndexSelection::Key(doc! { "a": 1.0 }), Ok(vec![0]));
        check(IndexSelection::Key(doc! { "a": -1 }), Err(27));
        check(IndexSelection::Key(doc! { "b": 1 }), Err(181));
        check(IndexSelection::Key(doc! { "_id": 1 }), Err(72));
    }
}
