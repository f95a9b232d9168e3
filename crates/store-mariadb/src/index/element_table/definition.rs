//! The table with the elements of an index's arrays, and the triggers that keep it, as statements.
//!
//! Each prefix of the indexed paths is a place where an array may be. The first place of a document that has one is taken apart: a row for
//! each element, with the keys of all fields as they are for that element. Fields that lie elsewhere have the same key in each row; a field
//! that meets another array (within an element, or beside the first) has that of an array, which every lookup reads as well.

use crate::catalog::table::Table;
use crate::index::element_table::record::ElementTable;
use crate::index::json_path::json_path_literal;
use crate::index::{Index, column_key};
use mariadb_client::quote;

/// The column with a field's key.
pub(crate) fn key_column(position: usize) -> String {
    format!("value_key{position}")
}

/// Where an index's fields may meet an array, in the order in which they are looked at: what lies in another comes behind it. A
/// place's number is its position.
pub(crate) fn places(index: &Index) -> Vec<&str> {
    let mut places: Vec<&str> = index.fields().flat_map(prefixes).collect();
    places.sort_by_key(|path| path.split('.').count());
    let mut seen = Vec::with_capacity(places.len());
    places.retain(|path| !seen.contains(path) && (seen.push(*path), true).1);
    places
}

/// A path, and each path to what it lies in.
fn prefixes(path: &str) -> impl Iterator<Item = &str> {
    let dots = path.match_indices('.').map(|(at, _)| &path[..at]);
    dots.chain(std::iter::once(path))
}

/// What is left of a field's path behind a place; `None` where the field lies elsewhere.
pub(crate) fn rest_within<'p>(path: &'p str, place: &str) -> Option<&'p str> {
    match path.strip_prefix(place)? {
        "" => Some(""),
        rest => rest.strip_prefix('.'),
    }
}

/// The statements that make the table, its triggers and its rows: in this order, so that no write is missed.
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

/// Inserts the rows of the document that a trigger is about.
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

/// How the keys of most arrays are computed. What a trigger computes is worked out anew each time it runs, and that is most of what a full key
/// costs: elements that are plain values are taken by a brief one first, and only where there are others all of it is needed.
pub(crate) struct Plain {
    /// Which elements these are.
    pub condition: String,
    /// Their keys, as [`keys`] gives them.
    pub keys: String,
}

impl Plain {
    /// `None` where there may be arrays on the way from an element to a field. `elsewhere`: the key of a field that does not lie in the
    /// place, whose column has that name.
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

/// How many elements a place's array has.
pub(crate) fn count_of(row: &str, place: &str) -> String {
    format!("JSON_LENGTH({row}.doc, {})", json_path_literal(place.split('.')))
}

/// What is to be done for the first place where a row has an array.
pub(crate) fn by_place(index: &Index, row: &str, statement: impl Fn(&str) -> String) -> String {
    let mut branches = String::new();
    for (number, place) in places(index).into_iter().enumerate() {
        let otherwise = if number == 0 { "IF" } else { "ELSEIF" };
        branches.push_str(&format!("{otherwise} {} THEN {}; ", is_array(row, place), statement(place)));
    }
    format!("{branches}END IF;")
}

/// Whether an update leaves all keys as they were: where there are arrays, all that they lie in.
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

/// Whether any field of a row has met an array.
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

/// The elements of a place's array: of each, what the fields within it lead to.
fn elements(index: &Index, row: &str, place: &str) -> String {
    elements_of(index, row, place, |rest| match rest.contains('.') {
        // There may be arrays on the way.
        true => "'$'".to_owned(),
        false => json_path_literal(std::iter::once(rest).filter(|rest| !rest.is_empty())),
    })
}

/// The elements of a place's array, and whether it is one, by the column that has its text, if there is one: to search all
/// documents for their arrays once more was a third of the time that it takes to fill the table.
fn stored_elements(index: &Index, place: &str) -> Option<(String, String)> {
    let text = format!("t.{}", quote(index.column_of_text(place)?));
    let elements =
        elements_within(index, place, &text, |rest| json_path_literal(rest.split('.').filter(|it| !it.is_empty())));
    // Fields within the elements are in other columns.
    let is_alone = index.fields().all(|field| field == place || rest_within(field, place).is_none());
    is_alone.then(|| (elements, format!("LEFT({text}, 1) = '['")))
}

/// A place's array, as compact text.
pub(crate) fn array_of(row: &str, place: &str) -> String {
    format!("JSON_COMPACT({})", extracted(row, place))
}

/// The elements of a place's array (`v`), and in each what the fields within it lead to, by the path literals given. An empty array is one element without
/// any value, so that conditions on fields elsewhere find its document.
pub(crate) fn elements_of(index: &Index, row: &str, place: &str, path: impl Fn(&str) -> String) -> String {
    elements_within(index, place, &array_of(row, place), path)
}

/// As [`elements_of`], of an array whose text is at hand.
fn elements_within(index: &Index, place: &str, array: &str, path: impl Fn(&str) -> String) -> String {
    let columns = index.fields().enumerate().filter_map(|(position, field)| {
        let rest = rest_within(field, place)?;
        Some(format!("v{position} JSON PATH {}", path(rest)))
    });
    let columns: Vec<String> = std::iter::once("v JSON PATH '$'".to_owned()).chain(columns).collect();
    let none = "_utf8mb4'[null]' COLLATE utf8mb4_nopad_bin";
    format!("JSON_TABLE(IF({array} = '[]', {none}, {array}), '$[*]' COLUMNS ({}))", columns.join(", "))
}

/// The keys of all fields for an element.
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
    fn places_come_before_what_lies_in_them() {
        let of = |key| places(&index(key)).join(" ");
        assert_eq!(of(document::doc! { "a": 1 }), "a");
        assert_eq!(of(document::doc! { "a.k": 1, "a.v": 1 }), "a a.k a.v");
        assert_eq!(of(document::doc! { "x.y.z": 1, "b": -1, "x.y": 1 }), "x b x.y x.y.z");
    }

    #[test]
    fn what_is_left_of_a_path() {
        assert_eq!(rest_within("a.b.c", "a"), Some("b.c"));
        assert_eq!(rest_within("a.b", "a.b"), Some(""));
        assert_eq!(rest_within("ab.c", "a"), None);
        assert_eq!(rest_within("a", "a.b"), None);
    }
}
