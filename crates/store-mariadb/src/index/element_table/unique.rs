//! A unique index whose fields meet arrays: no two documents may have an element in common.
//!
//! MariaDB's own unique key says so of documents that have one key each. From the first array on it is a plain one, and all keys of all
//! documents stand in a table with a unique key, kept by triggers: so SQL clients cannot write what MongoDB would refuse, either.
//!
//! Keys are exact: of what has no place in the order they have a hash. What SQL cannot take apart (an array within an array's documents) is refused
//! by gateways ([`crate::index::Index::check_document`]), and of SQL clients by a column that may not be NULL.

use crate::catalog::id_text;
use crate::catalog::table::Table;
use crate::index::element_table::definition::{
    Plain, array_of, by_place, count_of, elements_of, has_array, is_array, places, rest_within, unchanged,
};
use crate::index::element_table::record::ElementTable;
use crate::index::json_path::json_path_literal;
use crate::index::{Index, column_key};
use mariadb_client::quote;

/// Begins the names of these tables.
pub(crate) const PREFIX: &str = "~unique~";

/// The name of the table that belongs to one with elements.
pub(crate) fn table_name(values: &str) -> String {
    format!("{PREFIX}{}", values.rsplit('~').next().unwrap_or_default())
}

/// The statements that make the table, its triggers and its rows, and take from the index what is theirs from now on.
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
    // A trigger may have been first, with the same row.
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

/// Inserts the keys of the document that a trigger is about, if the index has it. To put elements in order and to drop those that are there
/// twice takes a temporary table, so that is done where a key is taken: by the document itself, or by another one. Then the index's first is told.
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

/// The keys of a document without arrays.
fn plain_keys(index: &Index, row: &str) -> String {
    (0..index.fields().count()).map(|position| index_column(index, row, position)).collect::<Vec<_>>().join(", ")
}

/// The elements of a place's array, and what each field within it leads to.
fn elements(index: &Index, row: &str, place: &str) -> String {
    elements_of(index, row, place, |rest| json_path_literal(rest.split('.').filter(|name| !name.is_empty())))
}

/// The keys of all fields for an element. NULL where there are more arrays than the one.
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

/// The key of a field that lies elsewhere. NULL where it meets another array.
fn no_array(column: &str) -> String {
    format!("NULLIF({column}, {})", column_key::ARRAY)
}

fn element_key(index: &Index, text: &str) -> String {
    let decimal = column_key::decimal_expression(text);
    let source = column_key::Source { text, decimal: Some(&decimal), bytes: index.bytes(), unique: true };
    format!("IF({text} IS NULL, '2', {})", source.expression())
}

/// A sparse index does without elements that have none of its fields.
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
