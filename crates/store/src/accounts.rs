//! Accounts that a store keeps beside users, so that its own access control is a second barrier.
//!
//! The documents of users are the truth, and accounts follow them. A change of users goes through
//! three steps: [`AccountChange::prepare`] or [`AccountChange::lock`], the write of the documents,
//! [`AccountChange::settle`]. Each step is recorded, so that the next change, or the next start,
//! completes one that was interrupted: an account without a user is dropped, and an account of a
//! user gets the password that the user has.

use auth::Privilege;
use error::Result;
use futures_util::future::LocalBoxFuture;

/// A user as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct AccountUser {
    /// The name of its account.
    pub name: String,
    /// Changes with the stored credentials.
    pub credentials: CredentialsDigest,
    /// The privileges of all its roles, each pattern once.
    pub privileges: Vec<Privilege>,
}

/// A digest of a user's stored credentials, which identifies a password.
pub type CredentialsDigest = [u8; 32];

/// A password that a user is about to get.
pub struct NewPassword<'a> {
    pub name: &'a str,
    pub password: &'a str,
    /// That of the credentials that are about to be stored.
    pub credentials: CredentialsDigest,
}

/// A change of accounts. No other one, of any gateway, runs at the same time.
pub trait AccountChange {
    /// Fails with 2 if no account can have this name.
    fn check_name(&self, name: &str) -> Result<()>;

    /// Prepares a new password, before it is stored. Creates the account if the user is new. It is
    /// locked until the change is settled.
    ///
    /// Fails with 2 if no account can have this name, and 51003 if another program has created one.
    fn prepare<'a>(&'a mut self, password: NewPassword<'a>) -> LocalBoxFuture<'a, Result<()>>;

    /// Locks the accounts of users that are about to be dropped, until the change is settled.
    fn lock<'a>(&'a mut self, names: &'a [String]) -> LocalBoxFuture<'a, Result<()>>;

    /// Brings all accounts in line with `users`, which are all users that are stored now. A user
    /// without a known password gets no login, but privileges.
    fn settle<'a>(&'a mut self, users: &'a [AccountUser]) -> LocalBoxFuture<'a, Result<()>>;
}
