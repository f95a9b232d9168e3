//! Texts that every match of a pattern contains, as far as they are obvious from it.

/// Returns the pieces of plain text that a pattern requires. None if parentheses, alternatives,
/// classes or other escapes leave that open.
///
/// Also none for patterns that may backtrack too long on a text without the pieces: such a text is
/// an error, not one that does not match.
pub(super) fn texts(pattern: &str, options: &str) -> Vec<String> {
    let mut pieces = Pieces::default();
    // Blanks and comments mean nothing there.
    if options.contains('x') || pieces.read(pattern).is_none() {
        return Vec::new();
    }
    pieces.found
}

/// With this number of optional letters the engine cannot reach its limit.
const OPTIONAL_MAX: usize = 8;

#[derive(Default)]
struct Pieces {
    found: Vec<String>,
    piece: String,
    optional: usize,
}

impl Pieces {
    fn read(&mut self, pattern: &str) -> Option<()> {
        let mut letters = pattern.chars();
        while let Some(letter) = letters.next() {
            steps::step();
            match letter {
                '(' | ')' | '[' | ']' | '{' | '}' | '|' | '*' | '+' => return None,
                '^' | '$' | '.' => self.end(),
                '?' => {
                    // The preceding letter is optional.
                    self.piece.pop();
                    self.end();
                    self.optional += 1;
                }
                '\\' => match letters.next()? {
                    'd' | 'D' | 'w' | 'W' | 's' | 'S' | 'b' | 'B' | 'A' | 'z' | 'Z' => self.end(),
                    escaped if escaped.is_ascii_punctuation() => self.piece.push(escaped),
                    _ => return None,
                },
                letter => self.piece.push(letter),
            }
        }
        self.end();
        (self.optional <= OPTIONAL_MAX).then_some(())
    }

    fn end(&mut self) {
        if !self.piece.is_empty() {
            self.found.push(std::mem::take(&mut self.piece));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Regex;
    use super::texts;
    use proptest::prelude::*;

    #[test]
    fn pieces_that_must_be_there() {
        assert_eq!(texts("^abc.def.g$", ""), ["abc", "def", "g"]);
        assert_eq!(texts("colou?r", "i"), ["colo", "r"]);
        assert_eq!(texts(r"www\.a\-b\d\bend", ""), ["www.a-b", "end"]);
        assert_eq!(texts("ä?bc", ""), ["bc"]);
        for unclear in ["a|b", "(abc)?", "[abc]", "a{0}", "abc.*def", "ab+c", r"\Qa.b\E", r"\x41", r"a\"] {
            assert!(texts(unclear, "").is_empty(), "{unclear}");
        }
        assert!(texts("a b", "x").is_empty());
        assert!(texts(&("a?".repeat(20) + "abc"), "").is_empty());
    }

    proptest! {
        /// A match contains all of them; without regard to case if the pattern ignores it.
        #[test]
        fn what_matches_contains_them(pattern in r"([abKs .*+?^$\\-]|\\[dwbAz.*]){1,8}", text in "[abkKsſK .]{0,8}", ignores_case: bool) {
            let options = if ignores_case { "i" } else { "" };
            let Ok(regex) = Regex::new(&pattern, options) else { return Ok(()) };
            if regex.matches_text(text.as_bytes()).unwrap_or(false) {
                for piece in texts(&pattern, options) {
                    let fold = |text: &str| match ignores_case {
                        true => text.to_lowercase().replace('ſ', "s"),
                        false => text.to_owned(),
                    };
                    prop_assert!(fold(&text).contains(&fold(&piece)), "{pattern:?} {text:?} {piece:?}");
                }
            }
        }
    }
}
