//! The definitions of a sharded collection's tables: on the head, and on the data servers.

use crate::catalog::id_text;
use crate::catalog::table::Table;
use crate::catalog::table_columns::{ID_KEY, ID_KEY_BYTES};
use crate::sharding::layout::Layout;
use mariadb_client::quote;
use std::fmt::Write;

/// The schema with the tables of sharded collections, on the data servers.
pub(crate) const DATA_SCHEMA: &str = "selkie_shards";

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

/// Returns the statement that creates the table of a data server.
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

/// Returns the columns, keys, engine and partitions of the head's table, as they follow its name in
/// a statement.
///
/// `seq` is no counter, for which Spider would ask all data servers at each insert. UUID_SHORT()
/// counts up, too, and heads with different `server_id`s return different numbers.
pub(crate) fn head_table(layout: &Layout) -> String {
    let comment = text_literal(&layout.comment());
    let mut sql = format!(
        "(\n  \
         seq BIGINT UNSIGNED NOT NULL DEFAULT (UUID_SHORT()) INVISIBLE,\n  \
         {},\n  \
         doc JSON COMMENT {comment},\n  \
         {},\n  \
         KEY seq (seq),\n  \
         UNIQUE KEY id (id),\n  \
         KEY {ID_KEY} ({ID_KEY}),\n  \
         CONSTRAINT id_not_null CHECK (id IS NOT NULL)\n\
         ) ENGINE = SPIDER DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin\n\
         COMMENT = 'wrapper \"mysql\", database \"{DATA_SCHEMA}\", table \"{}\"'\n\
         PARTITION BY KEY (id) (",
        Table::id_column(),
        Table::other_columns(),
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
