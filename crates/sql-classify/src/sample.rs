//! A statement like those of a canonical form, which can be parsed: question marks become literals.

use crate::scanner::TokenKind;
use crate::tokens::{ListedToken, Tokens};
use crate::words::{WordLists, lists_with};

/// Words that only a string may follow.
const BEFORE_STRINGS: [&str; 10] =
    ["AS", "SEPARATOR", "ESCAPE", "OUTFILE", "DUMPFILE", "INFILE", "DATE", "TIME", "TIMESTAMP", "COMMENT"];

/// Returns a text in which literals take the place of question marks, and shortened lists end.
pub fn sample(text: &str, tokens: &Tokens<'_>) -> String {
    let mut sample = String::with_capacity(text.len() + 16);
    let mut copied = 0;
    let list = tokens.as_slice();
    let mut at = 0;
    while let Some(listed) = list.get(at) {
        let start = offset(text, listed);
        let is_more =
            listed.is_symbol(",") && (1..=3).all(|dot| list.get(at + dot).is_some_and(|next| next.is_symbol(".")));
        if is_more || listed.token.kind == TokenKind::Parameter {
            sample.push_str(text.get(copied..start).unwrap_or_default());
            let last = if is_more { &list[at + 3] } else { listed };
            copied = offset(text, last) + last.token.text.len();
            if !is_more {
                let previous = at.checked_sub(1).and_then(|before| list.get(before));
                sample.push_str(if previous.is_some_and(may_precede_name) { "'s'" } else { "1" });
            }
        }
        at += if is_more { 4 } else { 1 };
    }
    sample.push_str(text.get(copied..).unwrap_or_default());
    sample
}

fn offset(text: &str, listed: &ListedToken<'_>) -> usize {
    (listed.token.text.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize)
}

/// Returns whether a literal after a token may be a name, or must be a string.
fn may_precede_name(previous: &ListedToken<'_>) -> bool {
    match previous.token.kind {
        TokenKind::Word => {
            let keywords = WordLists::KEYWORDS.or(WordLists::BEFORE_PARENTHESES);
            previous.token.is_qualified
                || BEFORE_STRINGS.iter().any(|word| previous.is_word(word))
                || !lists_with(previous.token.text).has(keywords)
        }
        TokenKind::Symbol => previous.token.text == ")",
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canonical::CANONICAL_LEXIS;

    #[test]
    fn question_marks_become_literals() {
        for (form, expected) in [
            (
                "SELECT a AS ?, b ? FROM t WHERE c IN (?, ...) LIMIT ?",
                "SELECT a AS 's', b 's' FROM t WHERE c IN (1) LIMIT 1",
            ),
            ("INSERT INTO t VALUES (?, ...), ...", "INSERT INTO t VALUES (1)"),
            ("SELECT GROUP_CONCAT(a SEPARATOR ?), _utf8 ?", "SELECT GROUP_CONCAT(a SEPARATOR 's'), _utf8 's'"),
        ] {
            assert_eq!(sample(form, &Tokens::of(form, CANONICAL_LEXIS).unwrap()), expected);
        }
    }
}
