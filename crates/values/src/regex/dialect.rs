//! Translates patterns of PCRE 8, which MongoDB uses, into those of PCRE2.
//!
//! PCRE2 rejects some patterns that PCRE 8 accepts (`[\w-.]`, `\i`, `[\B]`), reads others
//! differently (`a{,3}`, `\p{Lu}` without regard to case, recursion), and has syntax that PCRE 8
//! rejects. The translation is text, because the engine's compatibility options cover only a part
//! of this. Patterns without such parts are returned unchanged.
//!
//! Source: pcrepattern(3) of 8.42 and pcre2compat(3); where they are silent, the behavior of a 6.0
//! server.

mod class;
mod length;
mod properties;

use length::{Group, Length};
use std::borrow::Cow;

/// The longest name of a group.
const NAME_MAX: usize = 32;

/// The error of a pattern, as worded by PCRE 8.
type Reason = &'static str;

const UNKNOWN_ESCAPE: Reason = "unrecognized character follows \\";
const UNKNOWN_GROUP: Reason = "unrecognized character after (? or (?-";
const UNSUPPORTED_ESCAPE: Reason = "PCRE does not support \\L, \\l, \\N{name}, \\U, or \\u";

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Translated<'p> {
    pub pattern: Cow<'p, str>,
    /// Whether the pattern ends within a comment or a quotation, which would swallow text appended
    /// to it.
    pub is_open: bool,
}

/// Returns the pattern with the same meaning in PCRE2 as `pattern` in PCRE 8.
///
/// A pattern that both reject may be returned as well. Fails with the reason why only PCRE 8
/// rejects it.
pub(super) fn translate<'p>(pattern: &'p str, options: &str) -> Result<Translated<'p>, Reason> {
    let extended = options.contains('x');
    if !extended && !pattern.contains(['\\', '[', '{', '(']) {
        return Ok(Translated { pattern: Cow::Borrowed(pattern), is_open: false });
    }
    let mut translator = Translator {
        rest: pattern,
        out: String::with_capacity(pattern.len() + 16),
        flags: Flags { caseless: options.contains('i'), extended, strict: false },
        groups: vec![Group::default()],
        captures: 0,
        is_open: false,
    };
    translator.run()?;
    let Translator { out, is_open, .. } = translator;
    let pattern = if out == pattern { Cow::Borrowed(pattern) } else { Cow::Owned(out) };
    Ok(Translated { pattern, is_open })
}

/// The options that change how a pattern is parsed, and that the pattern itself may change.
#[derive(Clone, Copy, Debug, Default)]
struct Flags {
    caseless: bool,
    extended: bool,
    /// `(?X)`: an unknown escape is an error.
    strict: bool,
}

struct Translator<'p> {
    rest: &'p str,
    out: String,
    flags: Flags,
    /// The open groups, the whole pattern first.
    groups: Vec<Group>,
    captures: usize,
    is_open: bool,
}

impl<'p> Translator<'p> {
    fn run(&mut self) -> Result<(), Reason> {
        while let Some(letter) = self.rest.chars().next() {
            steps::step();
            match letter {
                '\\' => self.escape()?,
                '[' => self.class()?,
                '(' => self.open()?,
                ')' => self.close()?,
                '{' => self.brace(),
                '*' | '+' | '?' => {
                    self.copy(1);
                    self.repeat(Length::Variable);
                }
                '|' => {
                    self.copy(1);
                    self.group().next_branch();
                }
                '^' | '$' => {
                    self.copy(1);
                    self.atom(Length::Fixed(0));
                }
                '#' if self.flags.extended => {
                    self.is_open = !self.rest.contains('\n');
                    self.copy_past("\n");
                }
                // PCRE2 knows of more blanks.
                '\u{85}' | '\u{200E}' | '\u{200F}' | '\u{2028}' | '\u{2029}' if self.flags.extended => {
                    self.skip(letter.len_utf8());
                    self.out.push_str(&format!("\\x{{{:x}}}", letter as u32));
                    self.atom(Length::Fixed(1));
                }
                '\t'..='\r' | ' ' if self.flags.extended => self.copy(1),
                letter => {
                    self.copy(letter.len_utf8());
                    self.atom(Length::Fixed(1));
                }
            }
        }
        Ok(())
    }

    fn group(&mut self) -> &mut Group {
        if self.groups.is_empty() {
            self.groups.push(Group::default());
        }
        let last = self.groups.len() - 1;
        &mut self.groups[last]
    }

    fn atom(&mut self, length: Length) {
        self.group().add(length);
    }

    /// Reads the suffix of a quantifier.
    fn repeat(&mut self, times: Length) {
        self.group().repeat(times);
        if self.rest.starts_with(['?', '+']) {
            self.copy(1);
        }
    }

    fn copy(&mut self, bytes: usize) {
        let (copied, rest) = self.rest.split_at(bytes.min(self.rest.len()));
        self.out.push_str(copied);
        self.rest = rest;
    }

    /// Copies everything up to and including `end`, or to the end of the pattern.
    fn copy_past(&mut self, end: &str) {
        self.copy(self.rest.find(end).map_or(self.rest.len(), |at| at + end.len()));
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    /// Reads a brace that begins a quantifier, or one that is text.
    fn brace(&mut self) {
        match quantifier(self.rest) {
            Some((bytes, times)) => {
                self.copy(bytes);
                self.repeat(times);
            }
            None => {
                self.skip(1);
                self.out.push_str("\\{");
                self.atom(Length::Fixed(1));
            }
        }
    }

    fn escape(&mut self) -> Result<(), Reason> {
        let Some(letter) = self.rest[1..].chars().next() else {
            self.copy(1);
            return Ok(());
        };
        let rest = &self.rest[1..];
        let mut length = Length::Fixed(1);
        match letter {
            'Q' => return self.quotation(),
            'E' => {
                self.copy(2);
                return Ok(());
            }
            '0'..='9' => return self.number(),
            'x' => self.hexadecimal()?,
            'o' if in_braces(rest).is_some_and(has_blanks) => {
                return Err("non-octal character in \\o{} (closing brace missing?)");
            }
            'N' if rest[1..].starts_with('{') && quantifier(&rest[1..]).is_none() => return Err(UNSUPPORTED_ESCAPE),
            'p' | 'P' => self.property()?,
            'g' | 'k' => length = self.reference(letter)?,
            'A' | 'b' | 'B' | 'G' | 'K' | 'z' | 'Z' => {
                self.copy(2);
                length = Length::Fixed(0);
            }
            'R' | 'X' => {
                self.copy(2);
                length = Length::Variable;
            }
            _ if is_text(letter) => {
                if self.flags.strict {
                    return Err(UNKNOWN_ESCAPE);
                }
                self.skip(1);
                self.copy(1);
            }
            'c' => {
                self.copy(2);
                self.copy(self.rest.chars().next().map_or(0, char::len_utf8));
            }
            _ => self.copy(1 + letter.len_utf8()),
        }
        self.atom(length);
        Ok(())
    }

    fn quotation(&mut self) -> Result<(), Reason> {
        let quoted = &self.rest[2..];
        self.is_open = !quoted.contains("\\E");
        let letters = quoted.split("\\E").next().unwrap_or_default().chars().count();
        (0..letters).for_each(|_| self.atom(Length::Fixed(1)));
        self.copy(2);
        self.copy_past("\\E");
        Ok(())
    }

    /// Reads a backreference, an octal number, or `8` and `9`, which are text if there are fewer
    /// groups.
    fn number(&mut self) -> Result<(), Reason> {
        let digits = self.rest[1..].bytes().take_while(u8::is_ascii_digit).count();
        let number = self.rest[1..=digits].parse::<usize>().unwrap_or(usize::MAX);
        let octal = self.rest[1..=digits.min(3)].bytes().take_while(|digit| *digit < b'8').count();
        let bytes = match self.rest.as_bytes().get(1) {
            Some(b'8' | b'9') if number > self.captures => {
                self.skip(1);
                self.copy(1);
                self.atom(Length::Fixed(1));
                return Ok(());
            }
            Some(b'0') => octal,
            _ if number < 8 || number <= self.captures => {
                self.copy(1 + digits);
                self.atom(Length::Variable);
                return Ok(());
            }
            _ => octal,
        };
        self.copy(1 + bytes);
        self.atom(Length::Fixed(1));
        Ok(())
    }

    /// Reads `\x…`; without a digit it is a zero byte.
    fn hexadecimal(&mut self) -> Result<(), Reason> {
        let behind = &self.rest[2..];
        if behind.starts_with('{') {
            if in_braces(&self.rest[1..]).is_some_and(has_blanks) {
                return Err("non-hex character in \\x{} (closing brace missing?)");
            }
            self.copy_past("}");
            return Ok(());
        }
        let digits = behind.bytes().take(2).take_while(u8::is_ascii_hexdigit).count();
        if digits == 0 {
            self.skip(2);
            self.out.push_str("\\x00");
        } else {
            self.copy(2 + digits);
        }
        Ok(())
    }

    fn property(&mut self) -> Result<(), Reason> {
        let (bytes, property) = properties::read(self.rest)?;
        self.skip(bytes);
        if property.ignores_case && self.flags.caseless {
            self.out.push_str(&format!("(?-i:{})", property.text));
        } else {
            self.out.push_str(&property.text);
        }
        Ok(())
    }

    /// Reads `\g` and `\k`: a group again, as text or (`\g<1>`) as a pattern.
    fn reference(&mut self, letter: char) -> Result<Length, Reason> {
        let end = match self.rest[2..].chars().next() {
            Some('{') => "}",
            Some('<') => ">",
            Some('\'') => "'",
            _ => {
                self.copy(2);
                let digits = self.rest.bytes().take_while(u8::is_ascii_digit).count();
                self.copy(digits);
                return Ok(Length::Variable);
            }
        };
        if end == "}" && in_braces(&self.rest[1..]).is_some_and(has_blanks) {
            return Err("syntax error in subpattern name (missing terminator)");
        }
        let is_call = letter == 'g' && end != "}";
        let behind = self.rest[3..].find(end).map_or(self.rest.len(), |at| 3 + at + end.len());
        self.out.push_str(if is_call { "(?>" } else { "" });
        self.copy(behind);
        self.out.push_str(if is_call { ")" } else { "" });
        Ok(if is_call { Length::Unknown } else { Length::Variable })
    }

    fn open(&mut self) -> Result<(), Reason> {
        match &self.rest.as_bytes()[1..] {
            [b'?', ..] => self.open_special(),
            [b'*', b'a'..=b'z', ..] => Err("(*VERB) not recognized or malformed"),
            [b'*', b'A'..=b'Z' | b':', ..] => {
                self.copy_past(")");
                self.atom(Length::Unknown);
                // PCRE2 repeats `(*ACCEPT)`.
                if self.rest.starts_with(['*', '+', '?']) || quantifier(self.rest).is_some() {
                    return Err("nothing to repeat");
                }
                Ok(())
            }
            _ => {
                self.captures += 1;
                self.enter(1, Group::default());
                Ok(())
            }
        }
    }

    fn enter(&mut self, bytes: usize, group: Group) {
        self.copy(bytes);
        self.groups.push(group.within(self.flags));
    }

    fn close(&mut self) -> Result<(), Reason> {
        self.copy(1);
        if self.groups.len() > 1
            && let Some(group) = self.groups.pop()
        {
            self.flags = group.outer;
            self.atom(group.end()?);
        }
        Ok(())
    }

    /// Reads a group that begins with `(?`.
    fn open_special(&mut self) -> Result<(), Reason> {
        let behind = &self.rest[2..];
        match behind.as_bytes() {
            [b'#', ..] => {
                self.copy_past(")");
                Ok(())
            }
            [b':' | b'>' | b'|', ..] => {
                self.enter(3, Group::default());
                Ok(())
            }
            [b'=' | b'!', ..] => {
                self.enter(3, Group::lookahead());
                Ok(())
            }
            [b'<', b'=' | b'!', ..] => {
                self.enter(4, Group::lookbehind());
                Ok(())
            }
            [b'<', b'*', ..] | [b'*' | b'[' | b'^', ..] => Err(UNKNOWN_GROUP),
            [b'<', ..] => self.named(">", 1),
            [b'\'', ..] => self.named("'", 1),
            [b'P', b'<', ..] => self.named(">", 2),
            [b'P', b'=', ..] => {
                self.copy_past(")");
                self.atom(Length::Variable);
                Ok(())
            }
            [b'P', b'>', ..] | [b'&' | b'R' | b'0'..=b'9', ..] | [b'+' | b'-', b'0'..=b'9', ..] => {
                // A group that is called does not backtrack into the text it has matched.
                self.out.push_str("(?>");
                self.copy_past(")");
                self.out.push(')');
                self.atom(Length::Unknown);
                Ok(())
            }
            [b'(', ..] => self.condition(),
            [b'C', b'0'..=b'9' | b')', ..] => {
                self.copy_past(")");
                Ok(())
            }
            [b'C', ..] => Err("closing ) for (?C expected"),
            _ => self.set_flags(),
        }
    }

    /// Reads a named group, whose name begins `skipped` bytes after the question mark and ends
    /// before `end`.
    fn named(&mut self, end: &str, skipped: usize) -> Result<(), Reason> {
        let name = &self.rest[2 + skipped..];
        let length = name.find(end).unwrap_or(name.len());
        if length > NAME_MAX {
            return Err("subpattern name is too long (maximum 32 characters)");
        }
        self.captures += 1;
        self.enter(2 + skipped + length + end.len(), Group::default());
        Ok(())
    }

    /// Reads `(?(condition)yes|no)`.
    fn condition(&mut self) -> Result<(), Reason> {
        let condition = &self.rest[3..];
        if condition.starts_with("VERSION") {
            return Err("malformed number or name after (?(");
        }
        self.enter(2, Group::of_unknown_length());
        if !condition.starts_with('?') {
            self.copy_past(")");
        }
        Ok(())
    }

    /// Reads `(?i)` and `(?i:`.
    fn set_flags(&mut self) -> Result<(), Reason> {
        let mut flags = self.flags;
        let (mut set, mut bytes) = (true, 2);
        let mut written = String::from("(?");
        for letter in self.rest[2..].chars() {
            bytes += letter.len_utf8();
            match letter {
                '-' if set => set = false,
                'i' => flags.caseless = set,
                'x' => flags.extended = set,
                'X' => flags.strict = set,
                'm' | 's' | 'J' | 'U' => {}
                ')' | ':' => {
                    written.push(letter);
                    self.skip(bytes);
                    self.out.push_str(&written);
                    if letter == ':' {
                        self.groups.push(Group::default().within(self.flags));
                    }
                    self.flags = flags;
                    return Ok(());
                }
                _ => return Err(UNKNOWN_GROUP),
            }
            // PCRE2 has another meaning for two of `x`, and none for `X`.
            if letter != 'X' && !(letter == 'x' && written.ends_with('x')) {
                written.push(letter);
            }
        }
        self.copy(self.rest.len());
        Ok(())
    }
}

/// Returns whether PCRE 8 takes a letter after a backslash for itself.
fn is_text(letter: char) -> bool {
    matches!(letter, 'F' | 'I' | 'J' | 'M' | 'O' | 'T' | 'Y' | 'i' | 'j' | 'm' | 'q' | 'y')
}

/// Returns the bytes of the quantifier in braces at the beginning of a text, and how often it
/// repeats.
fn quantifier(text: &str) -> Option<(usize, Length)> {
    let (inside, _) = text.strip_prefix('{')?.split_once('}')?;
    let (least, most) = inside.split_once(',').unwrap_or((inside, inside));
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    if !is_number(least) || !most.is_empty() && !is_number(most) {
        return None;
    }
    let times = match least.parse() {
        Ok(times) if least == most => Length::Fixed(times),
        _ => Length::Variable,
    };
    Some((inside.len() + 2, times))
}

/// Returns the text in braces after the first letter.
fn in_braces(escape: &str) -> Option<&str> {
    let behind = escape.get(1..)?.strip_prefix('{')?;
    behind.split_once('}').map(|(inside, _)| inside)
}

fn has_blanks(inside: &str) -> bool {
    inside.contains([' ', '\t'])
}

#[cfg(test)]
mod tests;
