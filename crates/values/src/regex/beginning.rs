//! The text that every match of a regular expression begins with.

/// The literal prefix of an anchored pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beginning {
    /// Not empty.
    pub text: String,
    /// Whether all texts with this prefix match, because the pattern has no other parts.
    pub is_all: bool,
}

impl Beginning {
    /// Returns `None` for patterns that are not anchored, or have no literal prefix.
    pub(super) fn of(pattern: &str, options: &str) -> Option<Beginning> {
        let (text, is_all) = front(pattern, options)?;
        (!text.is_empty()).then_some(Beginning { text, is_all })
    }

    /// Returns the least text greater than all texts with this prefix, or `None` if there is none.
    pub fn end(&self) -> Option<String> {
        let mut end = self.text.clone();
        while let Some(last) = end.pop() {
            let next = match last {
                '\u{D7FF}' => Some('\u{E000}'),
                last => char::from_u32(last as u32 + 1),
            };
            if let Some(next) = next {
                end.push(next);
                return Some(end);
            }
        }
        None
    }
}

fn front(pattern: &str, options: &str) -> Option<(String, bool)> {
    let (rest, whole_text) = match pattern.strip_prefix("\\A") {
        Some(rest) => (rest, true),
        None => (pattern.strip_prefix('^')?, false),
    };
    // With several lines, `^` matches at the beginning of each.
    let unknown = |option: char| !(matches!(option, 's' | 'u' | 'x') || option == 'm' && whole_text);
    if rest.contains('|') || options.contains(unknown) {
        return None;
    }
    let extended = options.contains('x');
    let mut text = String::new();
    let mut letters = rest.chars();
    while let Some(letter) = letters.next() {
        let is_comment = letter == '#' && extended || letter == '(' && letters.as_str().starts_with("?#");
        match letter {
            // The letter before is optional, also if a comment follows it.
            _ if is_comment || "*?{".contains(letter) => {
                text.pop();
                return Some((text, false));
            }
            '^' | '$' | '.' | '[' | '(' | ')' | '+' => return Some((text, false)),
            '\\' => match letters.next() {
                Some('Q') => {
                    let quoted = letters.as_str();
                    let (quoted, behind) = quoted.split_once("\\E").unwrap_or((quoted, ""));
                    text.push_str(quoted);
                    letters = behind.chars();
                }
                // The end of a quotation without a beginning means nothing.
                Some('E') => {}
                Some(escaped) if !escaped.is_alphanumeric() => text.push(escaped),
                _ => return Some((text, false)),
            },
            '\t'..='\r' | ' ' if extended => {}
            letter => text.push(letter),
        }
    }
    Some((text, true))
}

#[cfg(test)]
mod tests {
    use super::super::compile;
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(pattern: &str, options: &str, expected: Option<(&str, bool)>) {
        let expected = expected.map(|(text, is_all)| Beginning { text: text.to_owned(), is_all });
        assert_eq!(Beginning::of(pattern, options), expected, "/{pattern}/{options}");
    }

    #[test]
    fn what_patterns_begin_with() {
        check("^abc", "", Some(("abc", true)));
        check("abc", "", None);
        check("^abc", "i", None);
        check("^abc", "m", None);
        check("\\Aabc", "m", Some(("abc", true)));
        check("^abc", "s", Some(("abc", true)));
        check("^abc", "u", Some(("abc", true)));
        check("^ab c # d", "x", Some(("ab", false)));
        check("^ab(?#c)*d", "", Some(("a", false)));
        check("^abc.*", "", Some(("abc", false)));
        check("^abc*", "", Some(("ab", false)));
        check("^abé?", "", Some(("ab", false)));
        check("^abc{0}d", "", Some(("ab", false)));
        check("^ab+", "", Some(("ab", false)));
        check("^ab|c", "", None);
        check("^a\\.b", "", Some(("a.b", true)));
        check("^a\\d", "", Some(("a", false)));
        check("^\\Qa.b\\Ec", "", Some(("a.bc", true)));
        check("^ab\\E*c", "", Some(("a", false)));
        check("^abc$", "", Some(("abc", false)));
        check("^", "", None);
        check("^a?", "", None);
    }

    #[test]
    fn what_is_above_a_text() {
        let end = |text: &str| Beginning { text: text.to_owned(), is_all: true }.end();
        assert_eq!(end("ab").as_deref(), Some("ac"));
        assert_eq!(end("a\u{10FFFF}").as_deref(), Some("b"));
        assert_eq!(end("\u{10FFFF}"), None);
        assert_eq!(end("\u{D7FF}").as_deref(), Some("\u{E000}"));
    }

    proptest! {
        #[test]
        fn what_matches_begins_so(
            pattern in r"\^(ab|[abc #\n.+*?$]|\\[dQEw.]|\(\?#b\)|\{0,1\}|\[ab\]|\(a\)){1,6}",
            text in "[abc #\n.]{0,6}",
            options in "[sux]?",
        ) {
            let Some(beginning) = Beginning::of(&pattern, &options) else { return Ok(()) };
            let Ok(engine) = compile(&pattern, &options) else { return Ok(()) };
            if engine.is_match(text.as_bytes()).unwrap_or(false) {
                prop_assert!(text.starts_with(&beginning.text), "{pattern:?} {options} {text:?} {beginning:?}");
            }
            if beginning.is_all {
                let longer = [&*beginning.text, &text].concat();
                prop_assert!(engine.is_match(longer.as_bytes()).unwrap(), "{pattern:?} {options} {longer:?}");
            }
        }
    }
}
