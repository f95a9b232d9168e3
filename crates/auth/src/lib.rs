//! Users, roles, privileges, and the computations of a login.
//!
//! In reading order: [`name`] (names of users and roles), [`action`], [`resource`], [`privilege`]
//! (what a login may do), [`builtin_roles`], [`user`] and [`role`] (the documents of
//! `system.users` and `system.roles`), [`roles`] (inheritance), [`restrictions`] (the addresses
//! from which a user may log in), [`login_mechanism`], [`password`] (the forms of passwords),
//! [`scram`] (logins by proof of a password), [`plain`] and [`password_check`] (logins that send
//! it).
//!
//! Nothing here does I/O, reads a clock or makes random numbers.

pub mod action;
pub mod builtin_roles;
pub mod credentials;
mod fields;
pub mod login_mechanism;
pub mod name;
pub mod password;
pub mod password_check;
pub mod plain;
pub mod privilege;
pub mod resource;
pub mod restrictions;
pub mod role;
pub mod roles;
pub mod scram;
pub mod user;

pub use action::{Action, ActionSet};
pub use credentials::{Credentials, ScramCredentials};
pub use login_mechanism::{LoginMechanism, LoginMechanisms};
pub use name::{RoleName, UserName};
pub use password_check::PasswordCheck;
pub use privilege::{Privilege, Privileges};
pub use resource::{Resource, ResourcePattern};
pub use restrictions::Restrictions;
pub use role::Role;
pub use user::User;
