//! The definitions of a sharded collection's tables: on the head, and on the data servers.

use crate::catalog::id_text;
use crate::catalog::table::Table;
use crate::catalog::table_columns::{ID_KEY, ID_KEY_BYTES};
use crate::index::Index;
use crate::index::columns::Definition;
use crate::sharding::layout::Layout;
use ahash::AHashSet;
use mariadb_client::quote;
use std::fmt::Write;

/// The schema with the tables of sharded collections, on the data servers.
pub(crate) const DATA_SCHEMA: &str = "selkie_shards";

/// The documents of which the columns of a new index are computed in one transaction.
const FILL_ROWS: usize = 1_000;

/// Returns the name of a collection's tables on the data servers, which no other collection has: it
/// stays when the collection is renamed.
pub(crate) fn data_table_name(schema: &str, table: &str) -> String {
    let readable = format!("{schema}_{table}");
    let readable: String = readable.chars().filter(|it| it.is_ascii_alphanumeric() || *it == '_').take(40).collect();
    format!("{readable}_{:016x}", rand::random::<u64>())
}

/// Returns the quoted schema and name of the tables on the data servers.
pub(crate) fn quoted_data_table(layout: &Layout) -> String {
    format!("{}.{}", quote(DATA_SCHEMA), quote(&layout.data_table))
}

/// Returns the statement that creates the table of a data server, without secondary indexes.
pub(crate) fn data_table(layout: &Layout) -> String {
    let table = quoted_data_table(layout);
    format!(
        "CREATE TABLE {table} (\n  \
         seq BIGINT UNSIGNED NOT NULL PRIMARY KEY,\n  \
         id VARCHAR({}) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,\n  \
         doc LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,\n  \
         opaque BOOLEAN,\n  \
         {ID_KEY} VARBINARY({}),\n  \
         UNIQUE KEY id (id),\n  \
         KEY {ID_KEY} ({ID_KEY})\n\
         ) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin",
        id_text::ID_CHARS_MAX,
        ID_KEY_BYTES + 1,
    )
}

/// The columns of indexes, each once, and after those that it is computed from.
fn columns(indexes: &[Index]) -> Vec<IndexColumn> {
    let mut seen = AHashSet::new();
    let mut all = Vec::new();
    for index in indexes {
        let Some(form) = index.column_key() else { continue };
        for Definition { name, sql, .. } in form.columns.definitions(&index.spec, index.filter.as_ref()) {
            if seen.insert(name.to_owned()) {
                all.push(IndexColumn { name: quote(name), sql });
            }
        }
    }
    all
}

/// A generated column of an index.
struct IndexColumn {
    name: String,
    sql: String,
}

impl IndexColumn {
    /// Returns the type, and the expression that computes the value.
    fn parts(&self) -> (&str, &str) {
        let (kind, rest) = self.sql.split_once(" AS (").unwrap_or((&self.sql, "NULL"));
        (kind, rest.rsplit_once(") STORED").map_or(rest, |(expression, _)| expression))
    }
}

/// Returns the clauses that define the keys of indexes.
fn keys(indexes: &[Index]) -> impl Iterator<Item = String> {
    let clauses = indexes.iter().flat_map(|index| index.key_clauses(false));
    clauses.map(|clause| clause.strip_prefix("ADD ").unwrap_or(&clause).to_owned())
}

/// Returns the statement that adds the columns of indexes on a data server, without values.
pub(crate) fn add_columns(layout: &Layout, indexes: &[Index]) -> String {
    let columns = columns(indexes);
    let add = columns.iter().map(|column| format!("ADD COLUMN IF NOT EXISTS {} {}", column.name, column.parts().0));
    format!("ALTER TABLE {} {}", quoted_data_table(layout), add.collect::<Vec<_>>().join(", "))
}

/// Returns the statement that computes the columns of indexes on a data server, some documents at a
/// time: writes wait for those only.
pub(crate) fn fill_columns(layout: &Layout, indexes: &[Index]) -> String {
    let table = quoted_data_table(layout);
    let columns = columns(indexes);
    // Assignments are evaluated in their order.
    let values = columns.iter().map(|column| format!("{} = {}", column.name, column.parts().1));
    let values = values.collect::<Vec<_>>().join(", ");
    format!(
        "BEGIN NOT ATOMIC\n\
         DECLARE done, until BIGINT UNSIGNED DEFAULT 0;\n\
         some: LOOP\n\
         SELECT MAX(seq) INTO until FROM (SELECT seq FROM {table} WHERE seq > done ORDER BY seq LIMIT {FILL_ROWS}) AS next;\n\
         IF until IS NULL THEN LEAVE some; END IF;\n\
         UPDATE {table} SET {values} WHERE seq > done AND seq <= until;\n\
         SET done = until;\n\
         END LOOP;\n\
         END"
    )
}

/// Returns the statement that adds the keys of indexes on a data server.
pub(crate) fn add_keys(layout: &Layout, indexes: &[Index]) -> String {
    let add = keys(indexes).map(|key| match key.strip_prefix("KEY ") {
        Some(rest) => format!("ADD KEY IF NOT EXISTS {rest}"),
        None => format!("ADD {key}"),
    });
    format!("ALTER TABLE {} {}", quoted_data_table(layout), add.collect::<Vec<_>>().join(", "))
}

/// Returns the statement that drops indexes on a data server, and the columns that are not `used`
/// by others.
pub(crate) fn drop_indexes(layout: &Layout, indexes: &[Index], used: &AHashSet<&str>) -> String {
    let names = indexes.iter().flat_map(|index| [Some(index.sql_name.as_str()), index.unordered_column()]);
    let mut clauses: Vec<String> = names.flatten().map(|name| format!("DROP KEY IF EXISTS {}", quote(name))).collect();
    let mut done = used.clone();
    for name in indexes.iter().flat_map(Index::column_names) {
        if done.insert(name) {
            clauses.push(format!("DROP COLUMN IF EXISTS {}", quote(name)));
        }
    }
    format!("ALTER TABLE {} {}", quoted_data_table(layout), clauses.join(", "))
}

/// Returns the columns, keys, engine and partitions of the head's table, as they follow its name in
/// a statement. `without_keys`: indexes of which there are only the columns yet.
///
/// `seq` is no counter, for which Spider would ask all data servers at each insert. UUID_SHORT()
/// counts up, too, and heads with different `server_id`s return different numbers.
pub(crate) fn head_table(layout: &Layout, indexes: &[Index], without_keys: &[Index]) -> String {
    let all: Vec<Index> = indexes.iter().chain(without_keys).cloned().collect();
    let more = columns(&all).into_iter().map(|column| format!("{} {},\n  ", column.name, column.sql));
    let more_keys: String = keys(indexes).map(|key| format!("{key},\n  ")).collect();
    let comment = text_literal(&layout.comment());
    let mut sql = format!(
        "(\n  \
         seq BIGINT UNSIGNED NOT NULL DEFAULT (UUID_SHORT()) INVISIBLE,\n  \
         {},\n  \
         doc JSON COMMENT {comment},\n  \
         {},\n  \
         {}\
         {more_keys}\
         KEY seq (seq),\n  \
         UNIQUE KEY id (id),\n  \
         KEY {ID_KEY} ({ID_KEY}),\n  \
         CONSTRAINT id_not_null CHECK (id IS NOT NULL)\n\
         ) ENGINE = SPIDER DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin\n\
         COMMENT = 'wrapper \"mysql\", database \"{DATA_SCHEMA}\", table \"{}\"'\n\
         PARTITION BY KEY (id) (",
        Table::id_column(),
        Table::other_columns(),
        more.collect::<String>(),
        layout.data_table,
    );
    for (position, server) in layout.shards.iter().enumerate() {
        let comma = if position > 0 { ", " } else { "" };
        // Writing to a string does not fail.
        let _ = write!(sql, "{comma}PARTITION {} COMMENT = 'srv \"{server}\"'", quote(server));
    }
    sql.push(')');
    sql
}

/// Returns a text as an SQL literal, for parts of definitions that take no parameters. The session
/// must not have NO_BACKSLASH_ESCAPES in its sql_mode.
fn text_literal(text: &str) -> String {
    let mut literal = String::with_capacity(text.len() + 2);
    literal.push('\'');
    for character in text.chars() {
        if matches!(character, '\'' | '\\') {
            literal.push('\\');
        }
        literal.push(character);
    }
    literal.push('\'');
    literal
}
