//! What an answer depends on beside the statement: who asks, and how the session is set. The server is asked for it.

use mariadb_wire::END;
use std::time::Duration;

/// Asks for all of it, in one row: what is read here first, and then what has to be the same.
/// A SELECT would change what FOUND_ROWS() gives.
pub const QUESTION: &str = "VALUES (HEX(DATABASE()), @@character_set_client, @@tx_isolation, @@lower_case_table_names, \
    @@sql_mode, HEX(USER()), HEX(CURRENT_USER()), HEX(CURRENT_ROLE()), @@time_zone, @@character_set_connection, \
    @@character_set_results, @@character_set_database, @@collation_connection, @@collation_database, @@sql_select_limit, \
    @@group_concat_max_len, @@div_precision_increment, @@lc_time_names, @@default_week_format, @@old_mode, @@max_sort_length, \
    @@sql_big_selects, @@max_join_size, @@sql_auto_is_null, @@system_versioning_asof, @@max_recursive_iterations, \
    @@max_statement_time, @@default_regex_flags, @@max_allowed_packet, @@sql_safe_updates, @@sql_quote_show_create, \
    @@wait_timeout, @@init_connect)";

#[derive(Debug)]
pub struct Settings {
    /// The whole row: part of the key.
    pub bytes: Vec<u8>,
    /// Who the client said it is.
    pub user: String,
    /// The current schema.
    pub schema: Option<String>,
    /// Names of tables mean the same in upper and lower case.
    pub ignores_case: bool,
    /// Statements are written in UTF-8.
    pub is_utf8: bool,
    /// Answers may be kept at all: nothing uncommitted is read, and statements are read as here.
    pub allows_keeping: bool,
    /// The account and the role by which the server judges what the session may do.
    pub account: String,
    /// How long the server waits for the next command before it closes the connection.
    pub wait_timeout: Duration,
}

impl Settings {
    /// Reads the server's answer: its packets.
    pub fn read(answer: &[u8], deprecates_eof: bool) -> Option<Settings> {
        let row = first_row(answer, deprecates_eof)?;
        let bytes = rows(answer, deprecates_eof)?;
        let text = |at: usize| row.get(at).cloned().flatten();
        let schema = match text(0) {
            Some(hex) => Some(unhex(&hex)?),
            None => None,
        };
        let case = text(3)?;
        let (isolation, mode) = (text(2)?, text(4)?);
        // A search for NULL may find the row that the session inserted last.
        let finds_last_insert = text(23).is_none_or(|value| value != "0");
        let is_prepared_as_new = text(32).is_none_or(|commands| is_harmless_at_login(&commands));
        let allows_keeping = isolation != "READ-UNCOMMITTED"
            && case != "2"
            && !finds_last_insert
            && is_prepared_as_new
            && !["ORACLE", "MSSQL", "DB2", "POSTGRESQL", "ANSI_QUOTES"].iter().any(|word| mode.contains(word));
        // The name may have an @ in it, the host has none.
        let user = unhex(&text(5)?)?;
        let user = user.rsplit_once('@').map_or(user.as_str(), |(name, _)| name).to_owned();
        let is_utf8 = text(1)?.starts_with("utf8");
        let account = format!("{}:{}", text(6)?, text(7).unwrap_or_default());
        let wait_timeout = Duration::from_secs(text(31)?.parse().ok()?);
        let ignores_case = case != "0";
        Some(Settings { user, schema, ignores_case, is_utf8, allows_keeping, account, wait_timeout, bytes })
    }
}

/// Whether what the server executes at each login leaves tables as they are for others.
fn is_harmless_at_login(commands: &str) -> bool {
    let commands = commands.trim().to_ascii_uppercase();
    commands.is_empty() || commands.starts_with("SET ") && !commands.contains([';', '('])
}

/// The packets in an answer.
fn packets(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let ([a, b, c, _], behind) = rest.split_first_chunk()?;
        let (payload, behind) = behind.split_at_checked(u32::from_le_bytes([*a, *b, *c, 0]) as usize)?;
        rest = behind;
        Some(payload)
    })
}

/// The first row of a result set: the packet behind its definitions.
fn first_row(bytes: &[u8], deprecates_eof: bool) -> Option<Vec<Option<String>>> {
    let mut payloads = packets(bytes);
    let columns = usize::from(*payloads.next()?.first()?);
    let mut row = payloads.nth(columns + usize::from(!deprecates_eof))?;
    let mut fields = Vec::new();
    for _ in 0..columns {
        let (&first, rest) = row.split_first()?;
        let (length, rest) = match first {
            0xFB => {
                fields.push(None);
                row = rest;
                continue;
            }
            0xFC => (usize::from(u16::from_le_bytes(*rest.first_chunk()?)), rest.get(2..)?),
            0xFD => {
                let [a, b, c] = *rest.first_chunk()?;
                (u32::from_le_bytes([a, b, c, 0]) as usize, rest.get(3..)?)
            }
            0xFE | 0xFF => return None,
            length => (usize::from(length), rest),
        };
        let (field, rest) = rest.split_at_checked(length)?;
        fields.push(Some(String::from_utf8_lossy(field).into_owned()));
        row = rest;
    }
    Some(fields)
}

/// The rows of a result set, one behind the other, without what is said of the columns.
pub fn rows(bytes: &[u8], deprecates_eof: bool) -> Option<Vec<u8>> {
    let mut payloads = packets(bytes);
    let columns = usize::from(*payloads.next()?.first()?);
    let behind = payloads.skip(columns + usize::from(!deprecates_eof));
    // The end tells of warnings and flags besides.
    Some(behind.take_while(|payload| payload.first() != Some(&END)).flatten().copied().collect())
}

fn unhex(hex: &str) -> Option<String> {
    let digits = hex.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
    String::from_utf8(digits.collect::<Option<Vec<u8>>>()?).ok()
}

/// Whether SHOW CREATE TABLE's answer tells of a table whose rows change by statements alone, and whose columns depend on rows alone:
/// no view, no temporary table, no engine that reads from elsewhere, no foreign key that changes rows, no column of times without a date.
pub fn is_plain_table(shown: &[u8], deprecates_eof: bool) -> bool {
    let Some(row) = first_row(shown, deprecates_eof) else { return false };
    let [Some(_), Some(text)] = row.as_slice() else { return false };
    let engine = text.find("\n) ENGINE=").map(|at| &text[at + "\n) ENGINE=".len()..]);
    let options = engine.unwrap_or_default();
    let engine = engine.and_then(|rest| rest.split_whitespace().next());
    let lower = text.to_ascii_lowercase();
    // Generated columns may ask the clock; Selkie's read the document.
    let asks = [
        "now(",
        "rand(",
        "uuid",
        "current_",
        "curdate(",
        "curtime(",
        "utc_",
        "sysdate",
        "unix_timestamp",
        "user(",
        "version(",
    ];
    let asks = asks.iter().chain(&["database(", "schema(", "connection_id(", "@", "localtime", "sleep(", "_lock("]);
    let asks =
        asks.chain(&["found_rows(", "row_count(", "last_insert_id(", "load_file(", "random_bytes(", "benchmark("]);
    let mut generated = lower.lines().filter(|line| line.contains(" generated always as "));
    text.starts_with("CREATE TABLE `")
        && engine.is_some_and(|engine| ["InnoDB", "Aria", "MyISAM"].contains(&engine))
        && !lower.contains("system versioning")
        && !lower.contains(" period for ")
        && !options.contains(" SEQUENCE=")
        && !["cascade", "set null", "set default"].iter().any(|rule| lower.contains(&format!(" {rule}")))
        && !lower.replace("` timestamp", "").contains("` time")
        && !generated.any(|line| asks.clone().any(|word| line.contains(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> bool {
        let row = [&[1, b't', 0xFC][..], &(text.len() as u16).to_le_bytes(), text.as_bytes()].concat();
        let payloads = [vec![2], b"def".to_vec(), b"def".to_vec(), row, vec![0xFE, 0, 0, 2, 0, 0, 0]];
        let packet = |payload: &Vec<u8>| [&(payload.len() as u32).to_le_bytes()[..3], &[0], payload].concat();
        is_plain_table(&payloads.iter().flat_map(packet).collect::<Vec<u8>>(), true)
    }

    #[test]
    fn plain_tables() {
        assert!(shown("CREATE TABLE `t` (\n  `a` int(11) DEFAULT NULL\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"));
        for text in [
            "CREATE TEMPORARY TABLE `t` (\n  `a` int(11) DEFAULT NULL\n) ENGINE=InnoDB",
            "CREATE ALGORITHM=UNDEFINED VIEW `t` AS SELECT 1",
            "CREATE TABLE `t` (\n  `a` int(11) DEFAULT NULL\n) ENGINE=FEDERATED",
            "CREATE TABLE `t` (\n  `a` int(11) DEFAULT NULL\n) ENGINE=MRG_MyISAM UNION=(`u`)",
            "CREATE TABLE `t` (\n  `next_not_cached_value` bigint(21) NOT NULL\n) ENGINE=InnoDB SEQUENCE=1",
            "CREATE TABLE `t` (\n  `a` time DEFAULT NULL\n) ENGINE=InnoDB",
            "CREATE TABLE `t` (\n  `a` datetime GENERATED ALWAYS AS (current_timestamp()) VIRTUAL\n) ENGINE=InnoDB",
            "CREATE TABLE `t` (\n  CONSTRAINT `x` FOREIGN KEY (`a`) REFERENCES `u` (`a`) ON DELETE CASCADE\n) ENGINE=InnoDB",
        ] {
            assert!(!shown(text), "{text}");
        }
    }
}
