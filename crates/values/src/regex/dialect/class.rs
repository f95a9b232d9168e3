//! `[…]`: character classes.

use super::properties;
use super::{Length, Reason, Translator, UNKNOWN_ESCAPE, UNSUPPORTED_ESCAPE, is_text};

/// The member before a position in a class.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Letter,
    /// A hyphen that begins a range.
    Hyphen,
    /// The end of a range.
    Range,
    /// A set of letters, after which a hyphen is text.
    Set,
}

/// The class as translated so far.
#[derive(Default)]
struct Class {
    members: String,
    /// Properties that the option `i` must not change.
    of_case: String,
}

impl Class {
    fn copy(&mut self, text: &str) {
        self.members.push_str(text);
    }

    /// Adds a literal letter.
    fn letter(&mut self, letter: char) {
        if letter.is_ascii_punctuation() {
            self.members.push('\\');
        }
        self.members.push(letter);
    }
}

impl Translator<'_> {
    pub(super) fn class(&mut self) -> Result<(), Reason> {
        if self.rest.starts_with("[[:<:]]") || self.rest.starts_with("[[:>:]]") {
            self.copy(7);
            self.atom(Length::Fixed(0));
            return Ok(());
        }
        let begin = self.rest;
        self.skip(1);
        let is_negated = self.skip_negation();
        let mut class = Class::default();
        // At the front, a hyphen is text.
        let mut last = Last::Range;
        if self.rest.starts_with(']') {
            self.skip(1);
            class.copy("\\]");
            last = Last::Letter;
        }
        loop {
            let Some(letter) = self.rest.chars().next() else {
                // A class without an end, which both reject.
                self.out.push_str(begin);
                return Ok(());
            };
            last = match letter {
                ']' => break,
                '[' => self.posix(&mut class),
                '\\' => self.class_escape(&mut class, last)?,
                '-' if last == Last::Set => {
                    self.skip(1);
                    class.copy("\\-");
                    Last::Letter
                }
                letter => {
                    self.skip(letter.len_utf8());
                    class.members.push(letter);
                    match last {
                        Last::Letter if letter == '-' => Last::Hyphen,
                        Last::Hyphen => Last::Range,
                        _ => Last::Letter,
                    }
                }
            };
        }
        self.skip(1);
        self.write_class(&class, is_negated);
        self.atom(Length::Fixed(1));
        Ok(())
    }

    /// Skips `^` and parts around it that mean nothing.
    fn skip_negation(&mut self) -> bool {
        let mut is_negated = false;
        loop {
            let bytes = match self.rest {
                rest if rest.starts_with("\\E") => 2,
                rest if rest.starts_with("\\Q\\E") => 4,
                rest if rest.starts_with('^') && !is_negated => {
                    is_negated = true;
                    1
                }
                _ => return is_negated,
            };
            self.skip(bytes);
        }
    }

    fn write_class(&mut self, class: &Class, is_negated: bool) {
        let Class { members, of_case } = class;
        let not = if is_negated { "^" } else { "" };
        let written = match (of_case.is_empty(), members.is_empty(), is_negated) {
            (true, ..) => format!("[{not}{members}]"),
            (false, true, _) => format!("(?-i:[{not}{of_case}])"),
            (false, false, false) => format!("(?:(?-i:[{of_case}])|[{members}])"),
            (false, false, true) => format!("(?:(?-i:(?![{of_case}]))[^{members}])"),
        };
        self.out.push_str(&written);
    }

    /// Reads `[:alpha:]`, or a bracket.
    fn posix(&mut self, class: &mut Class) -> Last {
        let rest = self.rest;
        let end = |mark: char| {
            let inside = rest.get(2..)?;
            let length = inside.find(|letter: char| !letter.is_ascii_alphabetic() && letter != '^')?;
            inside.get(length..)?.starts_with([mark, ']']).then_some(())?;
            inside.get(length..)?.strip_prefix(mark)?.strip_prefix(']')?;
            Some(2 + length + 2)
        };
        let set = rest.get(1..).and_then(|rest| rest.chars().next()).filter(|mark| ":.=".contains(*mark)).and_then(end);
        let bytes = set.unwrap_or(1);
        class.copy(rest.get(..bytes).unwrap_or_default());
        self.skip(bytes);
        if set.is_some() { Last::Set } else { Last::Letter }
    }

    fn class_escape(&mut self, class: &mut Class, last: Last) -> Result<Last, Reason> {
        let rest = self.rest;
        let Some(letter) = rest.get(1..).and_then(|rest| rest.chars().next()) else {
            self.skip(1);
            class.copy("\\");
            return Ok(Last::Letter);
        };
        match letter {
            'Q' => {
                let quoted = rest.get(2..).unwrap_or_default();
                let (quoted, behind) = quoted.split_once("\\E").unwrap_or((quoted, ""));
                quoted.chars().for_each(|letter| class.letter(letter));
                self.rest = behind;
            }
            'E' => self.skip(2),
            'p' | 'P' => {
                let (bytes, property) = properties::read(rest)?;
                self.skip(bytes);
                if property.ignores_case && self.flags.caseless {
                    class.of_case.push_str(&property.text);
                } else {
                    class.copy(&property.text);
                }
                return Ok(Last::Set);
            }
            'd' | 'D' | 'h' | 'H' | 's' | 'S' | 'v' | 'V' | 'w' | 'W' => {
                self.skip(2);
                class.copy(rest.get(..2).unwrap_or_default());
                return Ok(Last::Set);
            }
            'N' if rest.get(2..).is_some_and(|rest| rest.starts_with('{')) => return Err(UNSUPPORTED_ESCAPE),
            'A' | 'B' | 'C' | 'G' | 'K' | 'R' | 'X' | 'Z' | 'k' | 'z' if last == Last::Hyphen => {
                return Err("invalid range in character class");
            }
            'A' | 'B' | 'C' | 'G' | 'K' | 'R' | 'X' | 'Z' | 'g' | 'k' | 'z' => self.text_escape(class, letter)?,
            _ if is_text(letter) => self.text_escape(class, letter)?,
            'x' => {
                let before = std::mem::take(&mut self.out);
                let read = self.hexadecimal();
                let written = std::mem::replace(&mut self.out, before);
                class.copy(&written);
                read?;
            }
            letter => {
                self.skip(1 + letter.len_utf8());
                class.copy(rest.get(..1 + letter.len_utf8()).unwrap_or_default());
                if letter == 'c' {
                    let control = self.rest.chars().next().map_or(0, char::len_utf8);
                    class.copy(self.rest.get(..control).unwrap_or_default());
                    self.skip(control);
                }
            }
        }
        Ok(if last == Last::Hyphen { Last::Range } else { Last::Letter })
    }

    fn text_escape(&mut self, class: &mut Class, letter: char) -> Result<(), Reason> {
        if self.flags.strict {
            return Err(UNKNOWN_ESCAPE);
        }
        self.skip(2);
        class.letter(letter);
        Ok(())
    }
}
