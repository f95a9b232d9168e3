//! Access control: the server's users, and the logins of its connections.
//!
//! Without access control each connection may do everything. With it a connection must log in
//! first, except for the localhost exception: as long as there is no user and no role, a connection
//! from this machine may create the first user.
//!
//! In reading order: [`directory`] (the users), [`user_changes`], [`login`] (that of a connection),
//! [`conversation`] (a login that has begun).

mod cached;
pub mod conversation;
pub mod directory;
pub mod login;
pub mod user_changes;

use crate::login_throttle::LoginThrottle;
use auth::scram::DecoySecret;
use auth::{Action, ActionSet, Privilege, Privileges, ResourcePattern};
use directory::UserDirectory;
use error::Result;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use store::DocumentStore;

/// The privileges of the localhost exception, as in MongoDB.
static EXCEPTION: LazyLock<Privileges> = LazyLock::new(|| {
    let allow = |pattern, actions: &[Action]| Privilege::new(pattern, ActionSet::of(actions));
    Privileges::new([
        allow(ResourcePattern::database("admin"), &[Action::CreateUser, Action::GrantRole]),
        allow(ResourcePattern::database("$external"), &[Action::CreateUser]),
        allow(ResourcePattern::Cluster, &[Action::AddShard, Action::ReplSetConfigure, Action::ReplSetGetStatus]),
    ])
});

static NOTHING: LazyLock<Privileges> = LazyLock::new(Privileges::default);

/// The users of a server, and whether they must log in.
#[derive(Debug)]
pub struct AccessControl {
    is_enabled: bool,
    pub directory: UserDirectory,
    /// For the answers to users that do not exist.
    pub decoy: DecoySecret,
    /// Delays guesses of passwords.
    pub throttle: LoginThrottle,
    /// Whether a user or a role has been seen: the localhost exception never applies again.
    has_users: AtomicBool,
    /// Whether a worker looks for changes that other programs make.
    is_polling_claimed: AtomicBool,
}

impl AccessControl {
    /// `is_enabled`: whether clients must log in.
    pub fn new(is_enabled: bool) -> AccessControl {
        AccessControl {
            is_enabled,
            directory: UserDirectory::default(),
            decoy: DecoySecret::new(rand::random()),
            throttle: LoginThrottle::new(None),
            has_users: AtomicBool::new(false),
            is_polling_claimed: AtomicBool::new(false),
        }
    }

    /// Returns whether clients must log in.
    #[inline]
    pub fn is_enabled(&self) -> bool {
        self.is_enabled
    }

    /// Returns true for the first caller, which must look for changes that other programs make.
    pub(crate) fn claim_polling(&self) -> bool {
        !self.is_polling_claimed.swap(true, Relaxed)
    }

    /// Returns whether a user or a role is known to exist. If not, [`AccessControl::has_users`]
    /// asks the store.
    #[inline]
    pub fn is_known_to_have_users(&self) -> bool {
        self.has_users.load(Relaxed)
    }

    /// Returns whether a user or a role exists, or has existed since the start.
    pub async fn has_users(&self, store: &dyn DocumentStore) -> Result<bool> {
        if !self.has_users.load(Relaxed) && !self.directory.is_empty(store).await? {
            self.has_users.store(true, Relaxed);
        }
        Ok(self.has_users.load(Relaxed))
    }
}

/// Returns the privileges of a connection without a login.
pub(crate) fn privileges_without_login(by_localhost_exception: bool) -> &'static Privileges {
    if by_localhost_exception { &EXCEPTION } else { &NOTHING }
}
