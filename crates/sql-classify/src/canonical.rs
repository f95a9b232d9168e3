//! The canonical form of a text: literals are replaced by question marks, white space and comments
//! collapsed, keywords in upper case. Statements with the same form do the same to other values, so
//! digests, firewalls and caches may group statements by it.
//!
//! Lists of literals and repeated groups in parentheses are shortened: `IN (?, ...)`,
//! `VALUES (?, ...), ...`.

use crate::hint::Hint;
use crate::scanner::{DoubleQuotes, Lexis, Scanner, Token, TokenKind, Unclear};
use crate::words::{WordLists, lists_with};

/// A text in canonical form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Canonical<'a> {
    pub text: String,
    /// The values of literals determine the statement's effects, as in SET and PREPARE.
    pub depends_on_literals: bool,
    /// The text contains question marks of its own: parameters.
    pub has_parameters: bool,
    /// The routing hint in its comments.
    pub hint: Option<Hint<'a>>,
}

/// Returns the canonical form of a text.
pub fn canonical(text: &str, lexis: Lexis) -> Result<Canonical<'_>, Unclear> {
    let mut canonicalizer = Canonicalizer::new(text, lexis, Literals::Replaced);
    while !canonicalizer.advance(usize::MAX)? {}
    Ok(canonicalizer.finish())
}

/// Returns a text with its literals, but without superfluous white space and comments.
pub fn collapsed(text: &str, lexis: Lexis) -> Result<String, Unclear> {
    let mut canonicalizer = Canonicalizer::new(text, lexis, Literals::Kept);
    while !canonicalizer.advance(usize::MAX)? {}
    Ok(canonicalizer.finish().text)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Literals {
    Kept,
    Replaced,
}

/// Computes a canonical form, in parts if the text is long.
#[derive(Debug)]
pub struct Canonicalizer<'a> {
    scanner: Scanner<'a>,
    literals: Literals,
    out: String,
    previous: Previous<'a>,
    /// The parentheses that are open; the first entry is the text itself.
    groups: Vec<Group>,
    begins_statement: bool,
    depends_on_literals: bool,
    has_parameters: bool,
}

/// The token before.
#[derive(Clone, Copy, Debug, Default)]
struct Previous<'a> {
    token: Option<Token<'a>>,
    lists: WordLists,
    /// The end of the output before it, if it is the sign of a literal that may follow.
    before_sign: Option<usize>,
}

/// A group in parentheses, by positions in the output.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    start: usize,
    /// The tokens of the current item of the list.
    item_tokens: usize,
    item_start: usize,
    is_item_literal: bool,
    /// The end of the literals that the current item continues.
    literals: Option<Run>,
    /// The group within that the next one may repeat.
    inner: Option<(usize, usize, Run)>,
}

/// The items of a list that have been written as one.
#[derive(Clone, Copy, Debug)]
struct Run {
    end: usize,
    is_marked: bool,
}

const MORE: &str = ", ...";

impl<'a> Canonicalizer<'a> {
    fn new(text: &'a str, lexis: Lexis, literals: Literals) -> Canonicalizer<'a> {
        Canonicalizer {
            scanner: Scanner::new(text, lexis),
            literals,
            out: String::with_capacity(text.len().min(1 << 10)),
            previous: Previous::default(),
            groups: vec![Group::default()],
            begins_statement: true,
            depends_on_literals: false,
            has_parameters: false,
        }
    }

    /// Starts the canonical form of a text.
    pub fn of(text: &'a str, lexis: Lexis) -> Canonicalizer<'a> {
        Canonicalizer::new(text, lexis, Literals::Replaced)
    }

    /// Reads at least so many bytes more. Returns whether the text has been read to its end.
    pub fn advance(&mut self, bytes: usize) -> Result<bool, Unclear> {
        let end = self.scanner.position().saturating_add(bytes);
        while self.scanner.position() < end {
            match self.scanner.next_token()? {
                Some(token) => self.add(token),
                None => return Ok(true),
            }
        }
        Ok(false)
    }

    /// Returns the form of the text read so far.
    pub fn finish(mut self) -> Canonical<'a> {
        let end = self.out.trim_end_matches([';', ' ']).len();
        self.out.truncate(end);
        Canonical {
            text: self.out,
            depends_on_literals: self.depends_on_literals,
            has_parameters: self.has_parameters,
            hint: self.scanner.hint().copied(),
        }
    }

    fn add(&mut self, token: Token<'a>) {
        let replaces = self.literals == Literals::Replaced;
        let continues_string = |previous: Token<'_>| previous.kind == TokenKind::String;
        if replaces && token.kind == TokenKind::String && self.previous.token.is_some_and(continues_string) {
            return;
        }
        let is_keyword_position = token.kind == TokenKind::Word && !token.is_qualified;
        let lists = if is_keyword_position { lists_with(token.text) } else { WordLists::default() };
        if std::mem::replace(&mut self.begins_statement, token.text == ";") {
            self.depends_on_literals |=
                ["SET", "PREPARE", "EXECUTE"].iter().any(|word| token.text.eq_ignore_ascii_case(word));
        }
        self.has_parameters |= token.kind == TokenKind::Parameter;
        let is_value = replaces && (token.kind.is_literal() || token.kind == TokenKind::Parameter);
        if replaces && matches!(token.text, "," | ")") && token.kind == TokenKind::Symbol {
            self.end_item();
        }
        match self.previous.before_sign.filter(|_| is_value) {
            Some(before_sign) => {
                self.out.truncate(before_sign);
                self.item().item_tokens -= 1;
            }
            None if self.needs_space(&token) => self.out.push(' '),
            None => {}
        }
        let start = self.out.len();
        let may_be_sign = matches!(token.text, "-" | "+") && self.may_precede_sign();
        if is_value {
            self.out.push('?')
        } else {
            self.write(&token, lists)
        }
        if replaces {
            self.count(&token, start, is_value);
        }
        let before_sign = may_be_sign.then_some(start);
        self.previous = Previous { token: Some(token), lists, before_sign };
    }

    fn write(&mut self, token: &Token<'_>, lists: WordLists) {
        match token.text.strip_prefix('"').and_then(|name| name.strip_suffix('"')) {
            // A name in double quotes, whatever the mode of the reader.
            Some(name) if token.kind == TokenKind::Name => {
                self.out.push('`');
                self.out.push_str(&name.replace("\"\"", "\"").replace('`', "``"));
                self.out.push('`');
            }
            _ if lists.has(WordLists::KEYWORDS) => {
                let start = self.out.len();
                self.out.push_str(token.text);
                self.out[start..].make_ascii_uppercase();
            }
            _ => self.out.push_str(token.text),
        }
    }

    /// Returns whether a space separates a token from the one before. White space before a
    /// parenthesis is kept where it has a meaning.
    fn needs_space(&self, token: &Token<'_>) -> bool {
        let Previous { token: Some(previous), lists, .. } = &self.previous else { return false };
        let is_name =
            |kind| matches!(kind, TokenKind::Word | TokenKind::Name | TokenKind::NameOrString | TokenKind::Variable);
        match (previous.text, token.text) {
            (_, "," | ")" | ";") => false,
            ("(", _) => false,
            (_, ".") => !is_name(previous.kind),
            (".", _) => token.kind.is_literal(),
            (_, "(") if is_name(previous.kind) => match lists {
                _ if lists.has(WordLists::SPACE_SENSITIVE) => token.is_spaced,
                _ if lists.has(WordLists::FUNCTIONS) => false,
                _ => lists.has(WordLists::KEYWORDS.or(WordLists::BEFORE_PARENTHESES)),
            },
            _ if token.kind == TokenKind::Variable => token.is_spaced || previous.kind == TokenKind::Symbol,
            _ => true,
        }
    }

    /// Returns whether a plus or minus here is a sign.
    fn may_precede_sign(&self) -> bool {
        self.previous.token.is_none_or(|previous| match previous.kind {
            TokenKind::Symbol => previous.text != ")" && previous.text != "*",
            TokenKind::Word => self.previous.lists.has(WordLists::KEYWORDS),
            _ => false,
        })
    }

    // --- lists

    fn item(&mut self) -> &mut Group {
        if self.groups.is_empty() {
            self.groups.push(Group::default());
        }
        let last = self.groups.len() - 1;
        &mut self.groups[last]
    }

    /// Notes a token that was written at `start`.
    fn count(&mut self, token: &Token<'_>, start: usize, is_value: bool) {
        match token.text {
            "(" if token.kind == TokenKind::Symbol => {
                self.item().item_tokens += 1;
                let item_start = self.out.len();
                self.groups.push(Group { start, item_start, ..Group::default() });
            }
            ")" if token.kind == TokenKind::Symbol => self.end_group(),
            "," if token.kind == TokenKind::Symbol => {
                let item_start = self.out.len() + 1;
                let group = self.item();
                (group.item_tokens, group.item_start) = (0, item_start);
            }
            _ => {
                // These words are values where they are an item of a list.
                let is_value = is_value
                    || token.kind == TokenKind::Word
                        && ["NULL", "DEFAULT", "TRUE", "FALSE"]
                            .iter()
                            .any(|word| token.text.eq_ignore_ascii_case(word));
                let group = self.item();
                group.is_item_literal = group.item_tokens == 0 && is_value;
                group.item_tokens += 1;
            }
        }
    }

    /// Ends an item of a list in parentheses. Of several literals, one is written.
    fn end_item(&mut self) {
        if self.groups.len() < 2 {
            return;
        }
        let group = *self.item();
        if group.item_tokens != 1 || !group.is_item_literal {
            self.item().literals = None;
            return;
        }
        let literals = match group.literals {
            Some(run) => self.shorten(run),
            None => {
                self.out.truncate(group.item_start);
                self.out.push('?');
                Run { end: self.out.len(), is_marked: false }
            }
        };
        self.item().literals = Some(literals);
    }

    /// Ends a group in parentheses. It is not written if it repeats the one before.
    fn end_group(&mut self) {
        if self.groups.len() < 2 {
            return;
        }
        let start = self.item().start;
        self.groups.pop();
        let end = self.out.len();
        let before = self.item().inner;
        let inner = match before {
            Some((first, first_end, run))
                if self.out.get(run.end..start) == Some(", ") && self.out[first..first_end] == self.out[start..end] =>
            {
                (first, first_end, self.shorten(run))
            }
            _ => (start, end, Run { end, is_marked: false }),
        };
        self.item().inner = Some(inner);
    }

    /// Drops the output after a run of items.
    fn shorten(&mut self, mut run: Run) -> Run {
        self.out.truncate(run.end);
        if !run.is_marked {
            self.out.push_str(MORE);
        }
        run.end = self.out.len();
        run.is_marked = true;
        run
    }
}

/// The settings with which a canonical form is scanned.
pub const CANONICAL_LEXIS: Lexis = Lexis {
    double_quotes: DoubleQuotes::Unknown,
    plain_backslashes: true,
    charset: crate::scanner::Charset::Utf8,
    server_version: 0,
};

#[cfg(test)]
mod tests {
    use super::*;

    fn form(sql: &str) -> String {
        canonical(sql, Lexis::default()).unwrap().text
    }

    #[test]
    fn literals_and_white_space_make_no_difference() {
        for (sql, expected) in [
            ("select  *\nfrom t where a=1 and b = 'x' -- why", "SELECT * FROM t WHERE a = ? AND b = ?"),
            ("SELECT a,b FROM `d`.t WHERE c IN(1,2 ,3);", "SELECT a, b FROM `d`.t WHERE c IN (?, ...)"),
            ("SELECT a FROM t WHERE c IN (1)", "SELECT a FROM t WHERE c IN (?)"),
            ("SELECT a FROM t WHERE c IN (-1, NULL, +2)", "SELECT a FROM t WHERE c IN (?, ...)"),
            ("insert into T(a,b) values (1,'x'),(2,NULL)", "INSERT INTO T(a, b) VALUES (?, ...), ..."),
            ("insert into t values (1, now()), (2, now()),(3,null)", "INSERT INTO t VALUES (?, now()), ..., (?, ...)"),
            ("SELECT a-1, -1, a - -1, (-1) FROM t LIMIT 1, 2", "SELECT a - ?, ?, a - ?, (?) FROM t LIMIT ?, ?"),
            ("SELECT 'a' 'b', N'x', x'41', 0x41, 1e5, _utf8'x'", "SELECT ?, ?, ?, ?, ?, _utf8 ?"),
            (
                "SELECT /* a */ count(*), count (*), concat (a,b) FROM t",
                "SELECT count(*), count (*), concat(a, b) FROM t",
            ),
            ("SELECT f(1, a, 2, 3)", "SELECT f(?, a, ?, ...)"),
            ("SELECT f(1, 2 + 3), f((1),(2))", "SELECT f(?, ? + ?), f((?), ...)"),
            ("SELECT t . a, @x:=1, @@global.x, 'u'@'h'", "SELECT t.a, @x := ?, @@global.x, ?@'h'"),
            (
                "SELECT a FROM t WHERE b IS NULL AND (c IS NOT NULL)",
                "SELECT a FROM t WHERE b IS NULL AND (c IS NOT NULL)",
            ),
            ("SELECT 1;;  SELECT 2 ;", "SELECT ?;; SELECT ?"),
            ("SELECT t.select, t.`from` FROM t", "SELECT t.select, t.`from` FROM t"),
            ("/*!40101 SET NAMES utf8 */;", "SET NAMES utf8"),
            (")))", ")))"),
            ("", ""),
        ] {
            assert_eq!(form(sql), expected, "{sql}");
            let again = canonical(expected, CANONICAL_LEXIS).unwrap().text;
            if !expected.contains("...") {
                assert_eq!(again, expected, "the form is stable");
            }
        }
        let ansi = Lexis { double_quotes: DoubleQuotes::Names, ..Lexis::default() };
        assert_eq!(canonical(r#"SELECT "a""`b" FROM t"#, ansi).unwrap().text, "SELECT `a\"``b` FROM t");
    }

    #[test]
    fn a_long_list_is_as_short_as_a_short_one() {
        let list = |count: usize| (0..count).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
        let rows = |count: usize| (0..count).map(|n| format!("({n},'x',NULL)")).collect::<Vec<_>>().join(",");
        assert_eq!(
            form(&format!("SELECT a FROM t WHERE b IN ({})", list(5000))),
            form("SELECT a FROM t WHERE b IN (1, 2)")
        );
        let insert = |rows: String| form(&format!("INSERT INTO t VALUES {rows}"));
        assert_eq!(insert(rows(1000)), insert(rows(2)));
    }

    #[test]
    fn literals_matter_in_some_statements() {
        for (sql, depends) in
            [("SET a = 1", true), ("SELECT 1; execute immediate 'x'", true), ("SELECT a FROM t", false)]
        {
            assert_eq!(canonical(sql, Lexis::default()).unwrap().depends_on_literals, depends, "{sql}");
        }
        assert!(canonical("SELECT ?", Lexis::default()).unwrap().has_parameters);
    }

    #[test]
    fn collapsed_texts_keep_their_literals() {
        let text = collapsed("select  'a' 'b', -1, t . a, count (*) /* x */ from t", Lexis::default()).unwrap();
        assert_eq!(text, "SELECT 'a' 'b', - 1, t.a, count (*) FROM t");
    }

    #[test]
    fn a_text_may_be_read_in_parts() {
        let sql = format!("SELECT a FROM t WHERE b IN ({})", "'x', ".repeat(1000) + "1");
        let mut parts = Canonicalizer::of(&sql, Lexis::default());
        let mut count = 1;
        while !parts.advance(100).unwrap() {
            count += 1;
        }
        assert_eq!((parts.finish().text, count > 40), (form(&sql), true));
    }
}
