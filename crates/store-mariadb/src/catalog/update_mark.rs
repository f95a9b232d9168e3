//! Marks in the texts of updates: a comment that says which kind of update has made a change.
//!
//! The binary log has documents before and after, and beside them the text of the statement. From
//! its mark the [feed](crate::feed) knows whether a client has changed fields of a document or has
//! replaced it. The texts of a table are few, and each is prepared once.

/// The kind of update that has made a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UpdateMark {
    /// Operators, which change fields.
    Operators,
    /// A new document instead of the old one.
    Replacement,
    /// A pipeline, or a statement of another program: only the difference shows what it has done.
    Unmarked,
}

impl UpdateMark {
    pub const ALL: [UpdateMark; 3] = [UpdateMark::Operators, UpdateMark::Replacement, UpdateMark::Unmarked];

    /// Returns the beginning of the statement.
    pub fn verb(self) -> &'static str {
        match self {
            UpdateMark::Operators => "UPDATE /* by operators */",
            UpdateMark::Replacement => "UPDATE /* by replacement */",
            UpdateMark::Unmarked => "UPDATE",
        }
    }

    /// Returns the mark of a statement's text.
    pub fn of(statement: &[u8]) -> UpdateMark {
        let marked = [UpdateMark::Operators, UpdateMark::Replacement].into_iter();
        let mut found = marked.filter(|mark| statement.starts_with(mark.verb().as_bytes()));
        found.next().unwrap_or(UpdateMark::Unmarked)
    }
}

#[cfg(test)]
mod tests {
    use super::UpdateMark;

    #[test]
    fn marks_are_recognized() {
        for mark in UpdateMark::ALL {
            assert_eq!(UpdateMark::of(format!("{} `d`.`c` SET doc = ?", mark.verb()).as_bytes()), mark);
        }
        assert_eq!(UpdateMark::of(b""), UpdateMark::Unmarked);
    }
}
