//! Patterns that are plain text, perhaps anchored at the beginning, the end, or both.

/// A pattern that consists of text and anchors only.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plain {
    pub text: String,
    pub at_start: bool,
    /// Anchored at the end, or before a newline that is the end.
    pub at_end: bool,
}

impl Plain {
    pub fn matches(&self, searched: &[u8]) -> bool {
        let text = self.text.as_bytes();
        let ends = |searched: &[u8]| match self.at_start {
            true => searched == text,
            false => searched.ends_with(text),
        };
        match self.at_end {
            true => ends(searched) || searched.strip_suffix(b"\n").is_some_and(ends),
            false => searched.starts_with(text),
        }
    }
}

/// Returns `None` for a pattern with other parts, and for one without text. The option `s` does not
/// matter, because text has no `.`; neither does `u`, because text is Unicode anyway.
pub(super) fn of(pattern: &str, options: &str) -> Option<Plain> {
    if options.contains(|option| !matches!(option, 's' | 'u')) {
        return None;
    }
    let rest = pattern.strip_prefix('^');
    let mut plain = Plain { text: String::with_capacity(pattern.len()), at_start: rest.is_some(), at_end: false };
    let mut letters = rest.unwrap_or(pattern).chars();
    while let Some(letter) = letters.next() {
        steps::step();
        match letter {
            '\\' => plain.text.push(letters.next().filter(char::is_ascii_punctuation)?),
            '$' if letters.as_str().is_empty() => plain.at_end = true,
            letter if r"^$.|?*+()[]{}".contains(letter) => return None,
            letter => plain.text.push(letter),
        }
    }
    (!plain.text.is_empty()).then_some(plain)
}

#[cfg(test)]
mod tests {
    use super::super::compile;
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(pattern: &str, expected: Option<(&str, bool, bool)>) {
        let expected = expected.map(|(text, at_start, at_end)| Plain { text: text.to_owned(), at_start, at_end });
        assert_eq!(of(pattern, ""), expected, "/{pattern}/");
    }

    #[test]
    fn text_and_where_it_stands() {
        check("abc", Some(("abc", false, false)));
        check("^a c", Some(("a c", true, false)));
        check("ab\\.c$", Some(("ab.c", false, true)));
        check("^a\\$$", Some(("a$", true, true)));
        check("a\\\\$", Some(("a\\", false, true)));
        for more in
            ["", "^", "$", "^$", "a$b", "a^", "a.", "a+$", "\\d$", "\\Qa$", "a\\", "ab|c$", "^^a", "a$$", "(?i)a"]
        {
            check(more, None);
        }
        assert!(of("abc", "s").is_some());
        ["i", "m", "x", "si"].into_iter().for_each(|options| assert!(of("abc", options).is_none(), "{options}"));
    }

    proptest! {
        /// Matches like the engine.
        #[test]
        fn matches_are_the_engines(pattern in r"\^?([ab\n]|\\\.){1,3}\$?", text in "[ab.\n]{0,5}", options in "s?u?") {
            let Some(plain) = of(&pattern, &options) else { return Ok(()) };
            let engine = compile(&pattern, &options).unwrap();
            if plain.at_start || plain.at_end {
                prop_assert_eq!(plain.matches(text.as_bytes()), engine.is_match(text.as_bytes()).unwrap(), "{:?} {:?}", pattern, text);
            } else {
                prop_assert_eq!(text.contains(&plain.text), engine.is_match(text.as_bytes()).unwrap());
            }
        }
    }
}
