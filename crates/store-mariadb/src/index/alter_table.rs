//! The statements that add and drop the columns and keys of indexes.

use crate::catalog::table::Table;
use crate::index::Index;
use crate::index::columns::Definition;
use ahash::AHashSet;
use mariadb_client::quote;

/// Returns the statement that adds indexes, all or none. `relaxed`: the names of those whose
/// uniqueness another table ensures.
pub(crate) fn create_clause(table: &str, indexes: &[Index], relaxed: &[&str]) -> String {
    let (mut columns, mut keys, mut added) = (Vec::new(), Vec::new(), AHashSet::new());
    for index in indexes {
        let Some(form) = index.column_key() else {
            columns.push(format!("ADD COLUMN {} VARBINARY(1) AS (NULL) VIRTUAL INVISIBLE", quote(index.column(0))));
            continue;
        };
        for Definition { name, sql, shared } in form.columns.definitions(&index.spec, index.filter.as_ref()) {
            if added.insert(name) {
                let unless = if shared { "IF NOT EXISTS " } else { "" };
                columns.push(format!("ADD COLUMN {unless}{} {sql}", quote(name)));
            }
        }
        keys.extend(index.key_clauses(relaxed.contains(&index.sql_name.as_str())));
    }
    columns.append(&mut keys);
    format!("ALTER TABLE {table} {}", columns.join(", "))
}

/// Returns the statement that drops indexes of a table, and the columns that no other index uses.
pub(crate) fn drop_clause(table: &Table, indexes: &[Index]) -> String {
    let is_dropped = |index: &Index| indexes.iter().any(|dropped| dropped.sql_name == index.sql_name);
    let kept = table.indexes.iter().filter(|index| !is_dropped(index)).flat_map(Index::column_names);
    let mut done: AHashSet<&str> = kept.collect();
    let mut clauses = Vec::new();
    for index in indexes {
        if index.has_column_keys() {
            clauses.push(format!("DROP KEY {}", quote(&index.sql_name)));
            clauses.extend(index.unordered_column().map(|odd| format!("DROP KEY {}", quote(odd))));
            let unique = (0..index.fields().count()).filter(|_| index.spec.unique);
            clauses.extend(
                unique.map(|position| format!("DROP CONSTRAINT IF EXISTS {}", quote(&index.constraint(position)))),
            );
        }
        for name in index.column_names() {
            if done.insert(name) {
                clauses.push(format!("DROP COLUMN {}", quote(name)));
            }
        }
    }
    format!("ALTER TABLE {} {}", table.quoted, clauses.join(", "))
}
