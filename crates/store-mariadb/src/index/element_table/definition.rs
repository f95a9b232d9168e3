//! Statements that define an element table and the triggers that maintain it.
//!
//! Each prefix of the indexed paths may lead to an array. The first such path of a document with an
//! array is unwound: a row for each element, with the keys of all fields as they are for that
//! element. Other fields have the same key in each row. A field that meets another array (within an
//! element, or parallel to the first) has the key of arrays, which every lookup reads as well.

use crate::catalog::table::Table;
use crate::index::element_table::record::ElementTable;
use crate::index::json_path::json_path_literal;
use crate::index::{Index, column_key};
use mariadb_client::quote;

/// Returns the column with a field's key.
pub(crate) fn key_column(position: usize) -> String {
    format!("value_key{position}")
}

/// Returns the paths at which an index's fields may meet an array, outer ones first. Their
/// positions are the values of the column `place`.
pub(crate) fn places(index: &Index) -> Vec<&str> {
    let mut places: Vec<&str> = index.fields().flat_map(prefixes).collect();
    places.sort_by_key(|path| path.split('.').count());
    let mut seen = Vec::with_capacity(places.len());
    places.retain(|path| !seen.contains(path) && (seen.push(*path), true).1);
    places
}

/// Returns all prefixes of a path, and the path.
fn prefixes(path: &str) -> impl Iterator<Item = &str> {
    let dots = path.match_indices('.').map(|(at, _)| &path[..at]);
    dots.chain(std::iter::once(path))
}

/// Returns the rest of a field's path after a prefix; `None` if the field is not below it.
pub(crate) fn rest_within<'p>(path: &'p str, place: &str) -> Option<&'p str> {
    match path.strip_prefix(place)? {
        "" => Some(""),
        rest => rest.strip_prefix('.'),
    }
}

/// Returns the statements that create the table, its triggers and its rows, in this order, so that
/// no write is missed.
pub(crate) fn statements(table: &Table, index: &Index, values: &ElementTable) -> Vec<String> {
    let main = &table.quoted;
    let own = values.quoted(&table.schema);
    let trigger = |event: &str| format!("{}.{}", quote(&table.schema), quote(&format!("{}.{event}", values.name)));
    let delete = format!("DELETE FROM {own} WHERE seq = OLD.seq");
    let (was, is) = (has_array(index, "OLD"), has_array(index, "NEW"));
    let insert = insert_of_row(index, &own);
    let columns = || (0..index.fields().count()).map(key_column);
    let definitions = columns().map(|column| format!("{column} VARBINARY({}) NOT NULL", index.bytes() + 1));
    let (definitions, key) = (definitions.collect::<Vec<_>>().join(", "), columns().collect::<Vec<_>>().join(", "));
    let mut statements = vec![
        format!(
            "CREATE TABLE {own} (place SMALLINT UNSIGNED NOT NULL, {definitions}, seq BIGINT UNSIGNED NOT NULL, \
             PRIMARY KEY (place, {key}, seq), KEY (seq)) ENGINE = InnoDB"
        ),
        format!(
            "CREATE TRIGGER {} AFTER INSERT ON {main} FOR EACH ROW IF {is} THEN {insert} END IF",
            trigger("insert")
        ),
        format!(
            "CREATE TRIGGER {} AFTER UPDATE ON {main} FOR EACH ROW IF NOT ({}) THEN \
             IF {was} THEN {delete}; END IF; IF {is} THEN {insert} END IF; END IF",
            trigger("update"),
            unchanged(index),
        ),
        format!(
            "CREATE TRIGGER {} AFTER DELETE ON {main} FOR EACH ROW IF {was} THEN {delete}; END IF",
            trigger("delete")
        ),
    ];
    for (number, place) in places(index).into_iter().enumerate() {
        let before = places(index).into_iter().take(number);
        let others: String =
            before.map(|place| format!(" AND NOT COALESCE({}, FALSE)", is_array("t", place))).collect();
        let keys = keys(index, "t", place);
        let (elements, is_array) =
            stored_elements(index, place).unwrap_or_else(|| (elements(index, "t", place), is_array("t", place)));
        statements.push(format!(
            "INSERT IGNORE INTO {own} SELECT {number}, {keys}, t.seq FROM {main} AS t JOIN {elements} AS e \
             WHERE ({}) AND {is_array}{others} LOCK IN SHARE MODE",
            has_array(index, "t"),
        ));
    }
    statements
}

/// Returns the statement of a trigger that inserts the rows of a document.
fn insert_of_row(index: &Index, own: &str) -> String {
    let places = places(index);
    let number = |place: &str| places.iter().position(|other| *other == place).unwrap_or_default();
    by_place(index, "NEW", |place| {
        let elements = elements(index, "NEW", place);
        let insert = |keys: &str, condition: &str| {
            format!(
                "INSERT IGNORE INTO {own} SELECT {}, {keys}, NEW.seq FROM {elements} AS e{condition}",
                number(place)
            )
        };
        let all = insert(&keys(index, "NEW", place), "");
        let Some(plain) = Plain::of(index, place, |column| format!("NEW.{column}")) else { return all };
        let first = insert(&plain.keys, &format!(" WHERE {}", plain.condition));
        format!("{first}; IF ROW_COUNT() <> {} THEN {all}; END IF", count_of("NEW", place))
    })
}

/// Fast expressions for the keys of common elements. A trigger parses its expressions each time it
/// runs, which is most of the cost of a full key. So common values are inserted with a short
/// expression first; others need the full one.
pub(crate) struct Plain {
    /// The condition for common elements.
    pub condition: String,
    /// Their keys, equal to those of [`keys`].
    pub keys: String,
}

impl Plain {
    /// Returns `None` if there may be arrays on the way from an element to a field. `elsewhere`:
    /// the key of a field outside the array, by its column.
    pub fn of(index: &Index, place: &str, elsewhere: impl Fn(&str) -> String) -> Option<Plain> {
        let (mut conditions, mut keys) = (Vec::new(), Vec::new());
        for (position, path) in index.fields().enumerate() {
            match rest_within(path, place) {
                None => keys.push(elsewhere(&quote(index.column(position)))),
                Some(rest) if rest.contains('.') => return None,
                Some(_) => {
                    let text = format!("e.v{position}");
                    let source = column_key::Source { text: &text, decimal: None, bytes: index.bytes(), unique: false };
                    conditions.push(source.plain_condition());
                    keys.push(source.plain_expression());
                }
            }
        }
        Some(Plain { condition: conditions.join(" AND "), keys: keys.join(", ") })
    }
}

/// Returns the expression for the number of elements of an array.
pub(crate) fn count_of(row: &str, place: &str) -> String {
    format!("JSON_LENGTH({row}.doc, {})", json_path_literal(place.split('.')))
}

/// Returns the statement for the first path at which a row has an array.
pub(crate) fn by_place(index: &Index, row: &str, statement: impl Fn(&str) -> String) -> String {
    let mut branches = String::new();
    for (number, place) in places(index).into_iter().enumerate() {
        let otherwise = if number == 0 { "IF" } else { "ELSEIF" };
        branches.push_str(&format!("{otherwise} {} THEN {}; ", is_array(row, place), statement(place)));
    }
    format!("{branches}END IF;")
}

/// Returns the condition that an update changes no key; with arrays, nothing in their top-level
/// field.
pub(crate) fn unchanged(index: &Index) -> String {
    let columns = (0..index.fields().count()).map(|position| {
        let column = quote(index.column(position));
        format!("OLD.{column} <=> NEW.{column}")
    });
    let fields = places(index).into_iter().filter(|place| !place.contains('.'));
    let arrays = fields.map(|place| format!("{} <=> {}", extracted("OLD", place), extracted("NEW", place)));
    let (columns, arrays) = (columns.collect::<Vec<_>>().join(" AND "), arrays.collect::<Vec<_>>().join(" AND "));
    format!("{columns} AND (NOT COALESCE({}, FALSE) OR {arrays})", has_array(index, "NEW"))
}

/// Returns the condition that any field of a row has met an array.
pub(crate) fn has_array(index: &Index, row: &str) -> String {
    let array = column_key::ARRAY;
    let fields =
        (0..index.fields().count()).map(|position| format!("{row}.{} = {array}", quote(index.column(position))));
    fields.collect::<Vec<_>>().join(" OR ")
}

pub(crate) fn is_array(row: &str, place: &str) -> String {
    format!("LEFT({}, 1) = '['", extracted(row, place))
}

fn extracted(row: &str, place: &str) -> String {
    format!("JSON_EXTRACT({row}.doc, {})", json_path_literal(place.split('.')))
}

/// Returns the elements of an array with the values of the fields in each.
fn elements(index: &Index, row: &str, place: &str) -> String {
    elements_of(index, row, place, |rest| match rest.contains('.') {
        // There may be arrays on the way.
        true => "'$'".to_owned(),
        false => json_path_literal(std::iter::once(rest).filter(|rest| !rest.is_empty())),
    })
}

/// Returns the elements of an array and the condition that it is one, read from its text column, if
/// there is one. Searching all documents for their arrays again took a third of the time of filling
/// the table.
fn stored_elements(index: &Index, place: &str) -> Option<(String, String)> {
    let text = format!("t.{}", quote(index.column_of_text(place)?));
    let elements =
        elements_within(index, place, &text, |rest| json_path_literal(rest.split('.').filter(|it| !it.is_empty())));
    // Fields within the elements are in other columns.
    let is_alone = index.fields().all(|field| field == place || rest_within(field, place).is_none());
    is_alone.then(|| (elements, format!("LEFT({text}, 1) = '['")))
}

/// Returns an array as compact text.
pub(crate) fn array_of(row: &str, place: &str) -> String {
    format!("JSON_COMPACT({})", extracted(row, place))
}

/// Returns the elements of an array (`v`), with the values of the fields in each, by the given path
/// literals. An empty array has one element without a value, so that conditions on other fields
/// find its document.
pub(crate) fn elements_of(index: &Index, row: &str, place: &str, path: impl Fn(&str) -> String) -> String {
    elements_within(index, place, &array_of(row, place), path)
}

/// As [`elements_of`], of an array given by its text.
fn elements_within(index: &Index, place: &str, array: &str, path: impl Fn(&str) -> String) -> String {
    let columns = index.fields().enumerate().filter_map(|(position, field)| {
        let rest = rest_within(field, place)?;
        Some(format!("v{position} JSON PATH {}", path(rest)))
    });
    let columns: Vec<String> = std::iter::once("v JSON PATH '$'".to_owned()).chain(columns).collect();
    let none = "_utf8mb4'[null]' COLLATE utf8mb4_nopad_bin";
    format!("JSON_TABLE(IF({array} = '[]', {none}, {array}), '$[*]' COLUMNS ({}))", columns.join(", "))
}

/// Returns the keys of all fields for an element.
fn keys(index: &Index, row: &str, place: &str) -> String {
    let key = |(position, path): (usize, &str)| match rest_within(path, place) {
        None => format!("{row}.{}", quote(index.column(position))),
        // There may be arrays on the way.
        Some(rest) if rest.contains('.') => column_key::ARRAY.to_owned(),
        Some(_) => element_key(index, &format!("e.v{position}")),
    };
    index.fields().enumerate().map(key).collect::<Vec<_>>().join(", ")
}

fn element_key(index: &Index, text: &str) -> String {
    let decimal = column_key::decimal_expression(text);
    let source = column_key::Source { text, decimal: Some(&decimal), bytes: index.bytes(), unique: false };
    format!("IF({text} IS NULL, '2', {})", source.expression())
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::IndexSpec;

    fn index(key: document::DocBuf) -> Index {
        let spec = document::doc! { "v": 2, "key": &key, "name": "i" };
        Index::new(IndexSpec { name: "i".into(), key, unique: false, sparse: false, spec })
    }

    #[test]
    fn outer_paths_come_first() {
        let of = |key| places(&index(key)).join(" ");
        assert_eq!(of(document::doc! { "a": 1 }), "a");
        assert_eq!(of(document::doc! { "a.k": 1, "a.v": 1 }), "a a.k a.v");
        assert_eq!(of(document::doc! { "x.y.z": 1, "b": -1, "x.y": 1 }), "x b x.y x.y.z");
    }

    #[test]
    fn rest_of_a_path() {
        assert_eq!(rest_within("a.b.c", "a"), Some("b.c"));
        assert_eq!(rest_within("a.b", "a.b"), Some(""));
        assert_eq!(rest_within("ab.c", "a"), None);
        assert_eq!(rest_within("a", "a.b"), None);
    }
}
