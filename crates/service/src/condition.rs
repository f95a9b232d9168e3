//! The condition of a server, on which the place of each session depends.

use crate::reachability::Reached;
use crate::role::{Role, Standing};

/// The condition of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// Without a monitor, state and role are unknown, and do not matter.
    pub is_monitored: bool,
    /// Whether its monitor replaces the primary, now or when it is lost: sessions wait for one.
    pub awaits_primary: bool,
    pub reached: Reached,
    pub standing: Standing,
    pub mode: Mode,
    /// The configuration no longer names it.
    pub is_removed: bool,
}

/// What the administrator allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    #[default]
    Active,
    /// It gets no new sessions; those that it has end when they are idle, outside of a transaction.
    Drain,
    /// It gets no new sessions, and those that it has end at once.
    Maintenance,
}

impl Mode {
    pub const ALL: [Mode; 3] = [Mode::Active, Mode::Drain, Mode::Maintenance];

    pub fn name(self) -> &'static str {
        match self {
            Mode::Active => "active",
            Mode::Drain => "drain",
            Mode::Maintenance => "maintenance",
        }
    }

    pub fn from_name(name: &str) -> Option<Mode> {
        Mode::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

impl Condition {
    pub fn role(&self) -> Role {
        self.standing.role
    }
}
