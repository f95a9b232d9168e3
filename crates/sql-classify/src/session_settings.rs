//! The settings of a session that results depend on: its user, schema and variables.

use crate::scanner::{Charset, DoubleQuotes};
use std::time::Duration;

/// Selects all settings in one row: first those that are parsed here, then those that only have to
/// be equal. A SELECT would change FOUND_ROWS().
pub const SETTINGS_QUERY: &str = "VALUES (HEX(DATABASE()), @@character_set_client, @@tx_isolation, @@lower_case_table_names, \
    @@sql_mode, HEX(USER()), HEX(CURRENT_USER()), HEX(CURRENT_ROLE()), @@time_zone, @@character_set_connection, \
    @@character_set_results, @@character_set_database, @@collation_connection, @@collation_database, @@sql_select_limit, \
    @@group_concat_max_len, @@div_precision_increment, @@lc_time_names, @@default_week_format, @@old_mode, @@max_sort_length, \
    @@sql_big_selects, @@max_join_size, @@sql_auto_is_null, @@system_versioning_asof, @@max_recursive_iterations, \
    @@max_statement_time, @@default_regex_flags, @@max_allowed_packet, @@sql_safe_updates, @@sql_quote_show_create, \
    @@wait_timeout, @@init_connect)";

#[derive(Debug)]
pub struct SessionSettings {
    /// The whole row, as bytes.
    pub bytes: Vec<u8>,
    /// Stands for `bytes` in cache keys: no other settings have this number.
    pub number: u64,
    /// The user name that the client logged in with.
    pub user: String,
    /// The current schema.
    pub schema: Option<String>,
    /// Table names are case-insensitive.
    pub ignores_case: bool,
    /// The character set of statements.
    pub charset: Charset,
    pub double_quotes: DoubleQuotes,
    /// Results may be cached at all: no uncommitted rows are read, and the server parses statements
    /// as this crate does.
    pub allows_caching: bool,
    /// The account and the role whose privileges the session has.
    pub account: String,
    /// How long the server waits for the next command before it closes the connection.
    pub wait_timeout: Duration,
}

impl SessionSettings {
    /// Parses the row that [`SETTINGS_QUERY`] returns. `bytes`: the same row as it came. `number`:
    /// finds the number of these bytes.
    pub fn from_row(row: &[Option<String>], bytes: Vec<u8>, number: fn(&[u8]) -> u64) -> Option<SessionSettings> {
        let text = |at: usize| row.get(at).cloned().flatten();
        let schema = match text(0) {
            Some(hex) => Some(unhex(&hex)?),
            None => None,
        };
        let case = text(3)?;
        let (isolation, mode) = (text(2)?, text(4)?);
        // With sql_auto_is_null, `IS NULL` finds the row that the session inserted last.
        let finds_last_insert = text(23).is_none_or(|value| value != "0");
        let is_login_harmless = text(32).is_none_or(|commands| is_harmless(&commands));
        let allows_caching = isolation != "READ-UNCOMMITTED"
            && case != "2"
            && !finds_last_insert
            && is_login_harmless
            && !["ORACLE", "MSSQL", "DB2", "POSTGRESQL", "ANSI_QUOTES"].iter().any(|word| mode.contains(word));
        // The name may contain an @, the host does not.
        let user = unhex(&text(5)?)?;
        let user = user.rsplit_once('@').map_or(user.as_str(), |(name, _)| name).to_owned();
        let charset = charset(&text(1)?);
        let double_quotes = if mode.contains("ANSI_QUOTES") { DoubleQuotes::Names } else { DoubleQuotes::Strings };
        let account = format!("{}:{}", text(6)?, text(7).unwrap_or_default());
        let wait_timeout = Duration::from_secs(text(31)?.parse().ok()?);
        let ignores_case = case != "0";
        Some(SessionSettings {
            user,
            schema,
            ignores_case,
            charset,
            double_quotes,
            allows_caching,
            account,
            wait_timeout,
            number: number(&bytes),
            bytes,
        })
    }
}

/// Returns whether statements that the server executes at each login leave the session's tables as
/// they are for other sessions.
fn is_harmless(commands: &str) -> bool {
    let commands = commands.trim().to_ascii_uppercase();
    commands.is_empty() || commands.starts_with("SET ") && !commands.contains([';', '('])
}

fn charset(name: &str) -> Charset {
    match name {
        "big5" | "cp932" | "eucjpms" | "euckr" | "gb2312" | "gbk" | "sjis" | "ujis" => Charset::Other,
        _ if name.starts_with("utf8") => Charset::Utf8,
        _ => Charset::SingleByte,
    }
}

fn unhex(hex: &str) -> Option<String> {
    let digits = hex.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
    String::from_utf8(digits.collect::<Option<Vec<u8>>>()?).ok()
}
