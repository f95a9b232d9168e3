//! The length of a lookbehind, which PCRE 8 requires to be fixed in each branch.

use super::{Flags, Reason};

/// The number of letters that a part of a pattern matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    Fixed(usize),
    Variable,
    /// Left to the engine.
    Unknown,
}

impl Length {
    fn plus(self, other: Length) -> Length {
        match (self, other) {
            (Length::Fixed(one), Length::Fixed(other)) => Length::Fixed(one.saturating_add(other)),
            (Length::Unknown, _) | (_, Length::Unknown) => Length::Unknown,
            _ => Length::Variable,
        }
    }

    fn times(self, times: Length) -> Length {
        match (self, times) {
            // An assertion may be repeated.
            (_, Length::Fixed(0)) | (Length::Fixed(0), _) => Length::Fixed(0),
            (Length::Fixed(one), Length::Fixed(times)) => Length::Fixed(one.saturating_mul(times)),
            (Length::Unknown, _) | (_, Length::Unknown) => Length::Unknown,
            _ => Length::Variable,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Plain,
    Lookahead,
    Lookbehind,
    Unknown,
}

/// An open group: the whole pattern, or a part in parentheses.
#[derive(Debug)]
pub(super) struct Group {
    kind: Kind,
    /// The options outside it.
    pub outer: Flags,
    /// The length of the finished branches.
    branches: Option<Length>,
    has_variable_branch: bool,
    /// The length of the current branch, without its last atom.
    branch: Length,
    last: Length,
}

impl Default for Group {
    fn default() -> Self {
        Group::new(Kind::Plain)
    }
}

impl Group {
    fn new(kind: Kind) -> Group {
        Group {
            kind,
            outer: Flags::default(),
            branches: None,
            has_variable_branch: false,
            branch: Length::Fixed(0),
            last: Length::Fixed(0),
        }
    }

    pub fn lookahead() -> Group {
        Group::new(Kind::Lookahead)
    }

    pub fn lookbehind() -> Group {
        Group::new(Kind::Lookbehind)
    }

    pub fn of_unknown_length() -> Group {
        Group::new(Kind::Unknown)
    }

    pub fn within(self, outer: Flags) -> Group {
        Group { outer, ..self }
    }

    pub fn add(&mut self, atom: Length) {
        self.branch = self.branch.plus(self.last);
        self.last = atom;
    }

    /// Repeats the last atom.
    pub fn repeat(&mut self, times: Length) {
        self.last = self.last.times(times);
    }

    pub fn next_branch(&mut self) {
        let branch = self.branch.plus(self.last);
        self.has_variable_branch |= branch == Length::Variable;
        self.branches = Some(match self.branches {
            None => branch,
            Some(others) if others == branch => branch,
            Some(Length::Unknown) => Length::Unknown,
            Some(_) if branch == Length::Unknown => Length::Unknown,
            Some(_) => Length::Variable,
        });
        (self.branch, self.last) = (Length::Fixed(0), Length::Fixed(0));
    }

    /// Returns the length of the group, which ends here. Fails if a branch of a lookbehind has no
    /// fixed length.
    pub fn end(mut self) -> Result<Length, Reason> {
        self.next_branch();
        match self.kind {
            Kind::Plain => Ok(self.branches.unwrap_or(Length::Unknown)),
            Kind::Lookbehind if self.has_variable_branch => Err("lookbehind assertion is not fixed length"),
            Kind::Lookahead | Kind::Lookbehind => Ok(Length::Fixed(0)),
            Kind::Unknown => Ok(Length::Unknown),
        }
    }
}
