//! Plain tables: those whose rows depend on statements alone, by SHOW CREATE TABLE.

/// Returns whether SHOW CREATE TABLE describes a plain table. Its rows change by statements alone,
/// and its columns depend on rows alone.
///
/// So it is no view, no temporary table and has no engine that reads from elsewhere, no foreign key
/// that changes rows and no column of times without a date. `row`: the first row of the result.
pub fn is_plain_table(row: &[Option<String>]) -> bool {
    let [Some(_), Some(text)] = row else { return false };
    let engine = text.find("\n) ENGINE=").map(|at| &text[at + "\n) ENGINE=".len()..]);
    let options = engine.unwrap_or_default();
    let engine = engine.and_then(|rest| rest.split_whitespace().next());
    let lower = text.to_ascii_lowercase();
    // Generated columns may read the clock; Selkie's read the document.
    let impure = [
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
    let impure = impure.iter().chain(&["database(", "schema(", "connection_id(", "@", "localtime", "sleep(", "_lock("]);
    let impure =
        impure.chain(&["found_rows(", "row_count(", "last_insert_id(", "load_file(", "random_bytes(", "benchmark("]);
    let mut generated = lower.lines().filter(|line| line.contains(" generated always as "));
    text.starts_with("CREATE TABLE `")
        && engine.is_some_and(|engine| ["InnoDB", "Aria", "MyISAM"].contains(&engine))
        && !lower.contains("system versioning")
        && !lower.contains(" period for ")
        && !options.contains(" SEQUENCE=")
        && !["cascade", "set null", "set default"].iter().any(|rule| lower.contains(&format!(" {rule}")))
        && !lower.replace("` timestamp", "").contains("` time")
        && !generated.any(|line| impure.clone().any(|word| line.contains(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_plain(text: &str) -> bool {
        is_plain_table(&[Some("t".to_owned()), Some(text.to_owned())])
    }

    #[test]
    fn plain_tables() {
        assert!(is_plain("CREATE TABLE `t` (\n  `a` int(11) DEFAULT NULL\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"));
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
            assert!(!is_plain(text), "{text}");
        }
    }
}
