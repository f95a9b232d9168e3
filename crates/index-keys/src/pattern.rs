//! What every text that a regular expression matches begins with.

/// The text in front of a pattern, and whether there is nothing else to the pattern. `None` for patterns that are not anchored.
pub fn prefix(pattern: &str, options: &str) -> Option<(String, bool)> {
    let (rest, whole_text) = match pattern.strip_prefix("\\A") {
        Some(rest) => (rest, true),
        None => (pattern.strip_prefix('^')?, false),
    };
    // With several lines, `^` is at the beginning of each.
    let unknown = |option: char| !(matches!(option, 's' | 'x') || option == 'm' && whole_text);
    if rest.contains('|') || options.contains(unknown) {
        return None;
    }
    let extended = options.contains('x');
    let mut text = String::new();
    let mut letters = rest.chars();
    while let Some(letter) = letters.next() {
        match letter {
            // The letter before may not be there at all.
            '*' | '?' | '{' => {
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
                Some(escaped) if !escaped.is_alphanumeric() => text.push(escaped),
                _ => return Some((text, false)),
            },
            '#' if extended => return Some((text, false)),
            space if extended && space.is_ascii_whitespace() => {}
            letter => text.push(letter),
        }
    }
    Some((text, true))
}

/// The least text above all that begin with a text; `None`: there is none.
pub fn end_of(text: &str) -> Option<String> {
    let mut end = text.to_owned();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, options: &str, expected: Option<(&str, bool)>) {
        let expected = expected.map(|(text, all)| (text.to_owned(), all));
        assert_eq!(prefix(pattern, options), expected, "/{pattern}/{options}");
    }

    #[test]
    fn what_patterns_begin_with() {
        check("^abc", "", Some(("abc", true)));
        check("abc", "", None);
        check("^abc", "i", None);
        check("^abc", "m", None);
        check("\\Aabc", "m", Some(("abc", true)));
        check("^abc", "s", Some(("abc", true)));
        check("^ab c # d", "x", Some(("abc", false)));
        check("^abc.*", "", Some(("abc", false)));
        check("^abc*", "", Some(("ab", false)));
        check("^abé?", "", Some(("ab", false)));
        check("^abc{0}d", "", Some(("ab", false)));
        check("^ab+", "", Some(("ab", false)));
        check("^ab|c", "", None);
        check("^a\\.b", "", Some(("a.b", true)));
        check("^a\\d", "", Some(("a", false)));
        check("^\\Qa.b\\Ec", "", Some(("a.bc", true)));
        check("^abc$", "", Some(("abc", false)));
        check("^", "", Some(("", true)));
    }

    #[test]
    fn what_is_above_a_text() {
        assert_eq!(end_of("ab").as_deref(), Some("ac"));
        assert_eq!(end_of("a\u{10FFFF}").as_deref(), Some("b"));
        assert_eq!(end_of("\u{10FFFF}"), None);
        assert_eq!(end_of("\u{D7FF}").as_deref(), Some("\u{E000}"));
    }
}
