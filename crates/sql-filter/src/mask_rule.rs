//! Rules of masking: a column, and the text that is shown in place of its values.

use crate::deny_rule::TablePattern;
use crate::result_set::Column;
use pcre2::bytes::{Regex, RegexBuilder};
use sql_classify::TableName;
use std::fmt;

/// The text in place of a value, unless a rule has another.
const MASK: &str = "***";

/// A column whose values are masked.
#[derive(Clone)]
pub struct MaskRule {
    /// As written.
    text: String,
    table: TablePattern,
    /// Folded by [`fold`].
    column: String,
    mask: String,
    /// The parts of a value that are masked; `None`: the whole value.
    parts: Option<Regex>,
}

impl PartialEq for MaskRule {
    fn eq(&self, other: &MaskRule) -> bool {
        self.text == other.text
    }
}

impl Eq for MaskRule {}

impl fmt::Debug for MaskRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MaskRule({})", self.text)
    }
}

/// Returns a form of a name that is the same for all names that MariaDB may take for it.
pub fn fold(name: &str) -> String {
    let letter = |letter: char| {
        let (lower, upper) = (letter.to_lowercase().next(), letter.to_uppercase().next());
        let ascii = [lower, upper].into_iter().flatten().find(char::is_ascii);
        ascii.map(|ascii| ascii.to_ascii_lowercase()).or(lower).unwrap_or(letter)
    };
    name.chars().map(letter).collect()
}

/// Returns whether a name in a result set may be the wanted one. The server sends it in the
/// character set of the session's results, which may lack letters of it.
fn may_be(wanted: &str, name: &str) -> bool {
    let is_plain = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    fold(wanted) == fold(name) || !is_plain(wanted) && !is_plain(name)
}

impl MaskRule {
    /// Parses a rule, as in `column d.people.ssn with ###`. Fails with a sentence about the error.
    pub fn parse(text: &str) -> Result<MaskRule, String> {
        let (mut column, mut mask, mut parts) = (None, None, None);
        let mut words = text.split_ascii_whitespace();
        while let Some(word) = words.next() {
            let value = words.next().ok_or_else(|| format!("{text:?} has no value after {word:?}"))?;
            let is_new = match word {
                "column" => column.replace(value).is_none(),
                "with" => mask.replace(value.to_owned()).is_none(),
                "match" => {
                    let regex = RegexBuilder::new().utf(true).build(value).map_err(|error| error.to_string())?;
                    parts.replace(regex).is_none()
                }
                _ => {
                    let what = format!("{word:?} is no part of a rule");
                    return Err(format!("{what}; write column, with or match, each with its value"));
                }
            };
            if !is_new {
                return Err(format!("{text:?} has {word} twice"));
            }
        }
        let written = column.ok_or_else(|| format!("{text:?} has no column; write column d.t.c"))?;
        let split = written.rsplit_once('.').filter(|(_, column)| !column.is_empty() && *column != "*");
        let parsed = split.and_then(|(table, column)| Some((TablePattern::parse(table)?, column)));
        let (table, column) = parsed
            .filter(|(table, _)| table.name.is_some())
            .ok_or_else(|| format!("{written:?} is no column; write table.column or schema.table.column"))?;
        let mask = mask.unwrap_or_else(|| if parts.is_some() { "X" } else { MASK }.to_owned());
        Ok(MaskRule { text: text.to_owned(), table, column: fold(column), mask, parts })
    }

    /// Returns whether a name in a statement may mean the rule's table.
    pub fn is_of(&self, name: &TableName) -> bool {
        let is_same = |wanted: &Option<String>, name: &str| {
            wanted.as_ref().is_none_or(|wanted| fold(wanted) == fold(name.trim_start_matches("#mysql50#")))
        };
        is_same(&self.table.name, &name.name)
            && name.schema.as_ref().is_none_or(|schema| is_same(&self.table.schema, schema))
    }

    /// Returns whether a folded name is that of the column.
    pub fn is_column(&self, folded: &str) -> bool {
        self.column == folded
    }

    /// Returns whether the values of a column of a result set are masked. One without a table has
    /// an unknown origin: its name decides.
    pub fn masks(&self, column: &Column) -> bool {
        let Column { schema, table, original_name, name, .. } = column;
        if !column.is_readable {
            return true;
        }
        if table.is_empty() {
            return may_be(&self.column, name) || may_be(&self.column, original_name);
        }
        let is_same = |wanted: &Option<String>, name: &str| wanted.as_ref().is_none_or(|wanted| may_be(wanted, name));
        may_be(&self.column, original_name)
            && is_same(&self.table.name, table)
            && (schema.is_empty() || is_same(&self.table.schema, schema))
    }

    /// Returns the text in place of a value.
    pub fn masked(&self, value: &[u8]) -> Vec<u8> {
        let Some(parts) = &self.parts else { return self.mask.clone().into_bytes() };
        let letters = |bytes: &[u8]| std::str::from_utf8(bytes).map_or(bytes.len(), |text| text.chars().count());
        let fill = |bytes: &[u8]| self.mask.repeat(letters(bytes)).into_bytes();
        let (mut out, mut end) = (Vec::new(), 0);
        for found in parts.find_iter(value) {
            // A value that PCRE2 cannot search is masked as a whole, as is one without a match.
            let Ok(found) = found else { return fill(value) };
            if found.as_bytes().is_empty() {
                continue;
            }
            out.extend_from_slice(value.get(end..found.start()).unwrap_or_default());
            out.extend_from_slice(&fill(found.as_bytes()));
            end = found.end();
        }
        if end == 0 {
            return fill(value);
        }
        out.extend_from_slice(value.get(end..).unwrap_or_default());
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mariadb_wire::ColumnType;

    #[test]
    fn values_are_masked() {
        for (rule, value, expected) in [
            ("column d.t.c", "123", "***"),
            ("column t.c with -", "123", "-"),
            (r"column t.c match \d(?=\d{4})", "1234567890", "XXXXXX7890"),
            (r"column t.c match \d with #", "a1ß2", "a#ß#"),
            (r"column t.c match ^ß with #", "ßa", "#a"),
            (r"column t.c match \d", "äbc", "XXX"),
            (r"column t.c match \d*", "abc", "XXX"),
        ] {
            assert_eq!(MaskRule::parse(rule).unwrap().masked(value.as_bytes()), expected.as_bytes(), "{rule}");
        }
        assert_eq!(MaskRule::parse("column t.c match a").unwrap().masked(b"\xff\xfea"), b"XXX");
    }

    #[test]
    fn columns_are_found_by_their_origin() {
        let rule = MaskRule::parse("column d.t.Kind").unwrap();
        let column = |schema: &str, table: &str, original_name: &str, name: &str| Column {
            is_readable: true,
            schema: schema.into(),
            table: table.into(),
            original_name: original_name.into(),
            name: name.into(),
            column_type: ColumnType::VAR_STRING,
        };
        for (schema, table, original, name) in
            [("d", "t", "kind", "x"), ("D", "T", "KIND", "x"), ("", "t", "kind", "x"), ("", "", "", "kind")]
        {
            assert!(rule.masks(&column(schema, table, original, name)), "{schema}.{table}.{original}");
        }
        for (schema, table, original, name) in
            [("e", "t", "kind", "x"), ("d", "u", "kind", "x"), ("d", "t", "x", "kind")]
        {
            assert!(!rule.masks(&column(schema, table, original, name)), "{schema}.{table}.{original}");
        }
        let foreign = MaskRule::parse("column d.t.größe").unwrap();
        for name in ["größe", "gr??e", "gr\u{FFFD}e", "gr@00f6@00dfe"] {
            assert!(foreign.masks(&column("d", "t", name, "x")), "{name}");
        }
        assert!(!foreign.masks(&column("d", "t", "grosse", "x")));
        let unreadable = Column { is_readable: false, ..column("d", "t", "x", "x") };
        assert!(foreign.masks(&unreadable), "in UTF-16");
        assert_eq!(fold("\u{212A}ind"), "kind", "the Kelvin sign is a k");
    }

    #[test]
    fn malformed_rules() {
        for (text, part) in [
            ("", "no column"),
            ("column", "no value"),
            ("column c", "no column"),
            ("column d.*.c", "no column"),
            ("column t.c column t.d", "twice"),
            ("table t", "no part"),
            ("column t.c match (", "PCRE2"),
        ] {
            let error = MaskRule::parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
