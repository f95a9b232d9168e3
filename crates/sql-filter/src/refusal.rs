//! The errors that filters send.

/// An error that a filter sends in place of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub code: u16,
    pub state: &'static str,
    pub message: String,
}

/// ER_NONEXISTING_GRANT, by which MaxScale's filters refuse statements too.
const DENIED: (u16, &str) = (1141, "42000");

impl Refusal {
    /// The refusal of a statement.
    pub fn denied(message: String) -> Refusal {
        Refusal { code: DENIED.0, state: DENIED.1, message }
    }
}
