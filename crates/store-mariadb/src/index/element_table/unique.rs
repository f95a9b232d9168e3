//! The second table of a unique index whose fields meet arrays: no two documents may have an
//! element in common.
//!
//! MariaDB's own unique key suffices for documents with one key each. From the first array on it is
//! a plain key, and all keys of all documents are in a table with a unique key, maintained by
//! triggers. So SQL clients cannot write duplicates either.
//!
//! Keys are exact: unordered ones have a hash. Gateways refuse arrays within the documents of an
//! array ([`crate::index::Index::check_document`]), which SQL cannot unwind; for SQL clients a NOT
//! NULL column does.

use crate::catalog::id_text;
use crate::catalog::table::Table;
use crate::index::element_table::definition::{
    Plain, array_of, by_place, count_of, elements_of, has_array, is_array, places, rest_within, unchanged,
};
use crate::index::element_table::record::{ElementTable, UNIQUE_PREFIX};
use crate::index::json_path::json_path_literal;
use crate::index::{Index, column_key};
use mariadb_client::quote;

/// Returns the name of the table that belongs to an element table.
pub(crate) fn table_name(values: &str) -> String {
    format!("{UNIQUE_PREFIX}{}", values.rsplit('~').next().unwrap_or_default())
}

/// Returns the statements that create the table, its triggers and its rows, and make the index's
/// key a plain one.
pub(crate) fn statements(table: &Table, index: &Index, values: &ElementTable) -> Vec<String> {
    let (main, name) = (&table.quoted, table_name(&values.name));
    let own = format!("{}.{}", quote(&table.schema), quote(&name));
    let trigger = |event: &str| format!("{}.{}", quote(&table.schema), quote(&format!("{name}.{event}")));
    let columns: Vec<String> = (0..index.fields().count()).map(|position| format!("key{position}")).collect();
    let definitions: Vec<String> =
        columns.iter().map(|column| format!("{column} VARBINARY({}) NOT NULL", index.bytes() + 1)).collect();
    let (definitions, key) = (definitions.join(", "), columns.join(", "));
    let unique = quote(&index.sql_name);
    let delete = format!("DELETE FROM {own} WHERE seq = OLD.seq");
    let insert = insert_of_row(index, &own);
    // A trigger may have inserted the same row before.
    let known =
        format!("LOCK IN SHARE MODE ON DUPLICATE KEY UPDATE seq = IF({own}.seq = VALUES(seq), VALUES(seq), NULL)");
    let mut statements = vec![
        format!(
            "CREATE TABLE {own} ({definitions}, seq BIGINT UNSIGNED NOT NULL, PRIMARY KEY (seq, {key}), \
             UNIQUE KEY {unique} ({key})) ENGINE = InnoDB"
        ),
        format!("CREATE TRIGGER {} AFTER INSERT ON {main} FOR EACH ROW {insert}", trigger("insert")),
        format!(
            "CREATE TRIGGER {} AFTER UPDATE ON {main} FOR EACH ROW \
             IF NOT ({}) THEN {delete}; {insert}; END IF",
            trigger("update"),
            unchanged(index),
        ),
        format!("CREATE TRIGGER {} AFTER DELETE ON {main} FOR EACH ROW {delete}", trigger("delete")),
        format!(
            "INSERT INTO {own} SELECT {}, t.seq FROM {main} AS t WHERE {} IS NOT NULL AND NOT COALESCE({}, FALSE) {known}",
            plain_keys(index, "t"),
            index_column(index, "t", 0),
            has_array(index, "t"),
        ),
    ];
    for (number, place) in places(index).into_iter().enumerate() {
        let others: String = places(index)[..number]
            .iter()
            .map(|place| format!(" AND NOT COALESCE({}, FALSE)", is_array("t", place)))
            .collect();
        statements.push(format!(
            "INSERT INTO {own} SELECT DISTINCT {}, t.seq FROM {main} AS t JOIN {} AS e \
             WHERE {} IS NOT NULL AND ({}) AND {}{others}{} {known}",
            element_keys(index, "t", place),
            elements(index, "t", place),
            index_column(index, "t", 0),
            has_array(index, "t"),
            is_array("t", place),
            but_missing(index, "t", place),
        ));
    }
    statements.push(index.relaxing_clause(main));
    statements
}

fn index_column(index: &Index, row: &str, position: usize) -> String {
    format!("{row}.{}", quote(index.column(position)))
}

/// Returns the statement of a trigger that inserts the keys of a document, if the index has it.
/// Sorting elements and removing duplicates needs a temporary table, so that is done only after a
/// duplicate key: of the document itself, or of another one. Then the error has the index's first
/// duplicate.
fn insert_of_row(index: &Index, own: &str) -> String {
    let order = index.key_columns().iter().zip(1..).map(|(column, number)| match column.descends {
        true => format!("{number} DESC"),
        false => number.to_string(),
    });
    let order = order.collect::<Vec<_>>().join(", ");
    let arrays = by_place(index, "NEW", |place| {
        let keys = element_keys(index, "NEW", place);
        let (elements, but) = (elements(index, "NEW", place), but_missing(index, "NEW", place));
        let insert = |keys: &str, condition: &str, order: &str| {
            format!("INSERT INTO {own} SELECT {keys}, NEW.seq FROM {elements} AS e WHERE {condition}{but}{order}")
        };
        let all = insert(&keys, "TRUE", "");
        let plainly = Plain::of(index, place, |column| no_array(&format!("NEW.{column}"))).map_or(all.clone(), |plain| {
            let first = insert(&plain.keys, &plain.condition, "");
            let others = insert(&keys, &format!("NOT ({})", plain.condition), "");
            let (array, count) = (array_of("NEW", place), count_of("NEW", place));
            format!("IF {array} = '[]' THEN {all}; ELSE {first}; IF ROW_COUNT() <> {count} THEN {others}; END IF; END IF")
        });
        format!(
            "BEGIN DECLARE EXIT HANDLER FOR 1062 BEGIN DELETE FROM {own} WHERE seq = NEW.seq; {}; END; {plainly}; END",
            insert(&format!("DISTINCT {keys}"), "TRUE", &format!(" ORDER BY {order}")),
        )
    });
    format!(
        "IF {} IS NOT NULL THEN IF {} THEN {arrays} ELSE INSERT INTO {own} VALUES ({}, NEW.seq); END IF; END IF",
        index_column(index, "NEW", 0),
        has_array(index, "NEW"),
        plain_keys(index, "NEW"),
    )
}

/// Returns the keys of a document without arrays.
fn plain_keys(index: &Index, row: &str) -> String {
    (0..index.fields().count()).map(|position| index_column(index, row, position)).collect::<Vec<_>>().join(", ")
}

/// Returns the elements of an array, with the values of the fields in each.
fn elements(index: &Index, row: &str, place: &str) -> String {
    elements_of(index, row, place, |rest| json_path_literal(rest.split('.').filter(|name| !name.is_empty())))
}

/// Returns the keys of all fields for an element; NULL if there are further arrays.
fn element_keys(index: &Index, row: &str, place: &str) -> String {
    let key = |(position, path): (usize, &str)| match rest_within(path, place) {
        None => no_array(&index_column(index, row, position)),
        Some("") => {
            let text = format!("e.v{position}");
            let array = format!(
                "concat('F',unhex(sha2({},256)))",
                id_text::unified_expression(&format!("json_compact({text})"))
            );
            let element = format!("IF(LEFT({text}, 1) = '[', {array}, {})", element_key(index, &text));
            format!("IF({} = '[]', '1', {element})", array_of(row, place))
        }
        Some(rest) => {
            let names: Vec<&str> = rest.split('.').collect();
            let within = (1..=names.len()).map(|depth| json_path_literal(names[..depth].iter().copied()));
            let nested = within.map(|path| format!("COALESCE(LEFT(JSON_EXTRACT(e.v, {path}), 1) = '[', FALSE)"));
            let nested = nested.collect::<Vec<_>>().join(" OR ");
            format!("IF({nested}, NULL, {})", element_key(index, &format!("e.v{position}")))
        }
    };
    index.fields().enumerate().map(key).collect::<Vec<_>>().join(", ")
}

/// Returns the key of a field outside the array; NULL if it meets another array.
fn no_array(column: &str) -> String {
    format!("NULLIF({column}, {})", column_key::ARRAY)
}

fn element_key(index: &Index, text: &str) -> String {
    let decimal = column_key::decimal_expression(text);
    let source = column_key::Source { text, decimal: Some(&decimal), bytes: index.bytes(), unique: true };
    format!("IF({text} IS NULL, '2', {})", source.expression())
}

/// Returns the condition by which a sparse index excludes elements without its fields.
fn but_missing(index: &Index, row: &str, place: &str) -> String {
    if !index.spec.sparse {
        return String::new();
    }
    let missing = index.fields().enumerate().map(|(position, path)| match rest_within(path, place) {
        None => format!("{row}.{} IS NULL", quote(index.text_column(position))),
        Some("") => "FALSE".to_owned(),
        Some(_) => format!("e.v{position} IS NULL"),
    });
    format!(" AND NOT ({})", missing.collect::<Vec<_>>().join(" AND "))
}
