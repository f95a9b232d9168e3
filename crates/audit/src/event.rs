//! An event, before it is written.

use document::DocBuf;
use std::net::SocketAddr;
use std::sync::Arc;

/// The kinds of events, as in MongoDB's `atype`.
pub mod kind {
    pub const APPLICATION_MESSAGE: &str = "applicationMessage";
    pub const AUTH_CHECK: &str = "authCheck";
    pub const AUTHENTICATE: &str = "authenticate";
    pub const CLIENT_METADATA: &str = "clientMetadata";
    pub const CREATE_COLLECTION: &str = "createCollection";
    pub const CREATE_DATABASE: &str = "createDatabase";
    pub const CREATE_INDEX: &str = "createIndex";
    pub const CREATE_ROLE: &str = "createRole";
    pub const CREATE_USER: &str = "createUser";
    pub const DIRECT_AUTH_MUTATION: &str = "directAuthMutation";
    pub const DROP_ALL_ROLES_FROM_DATABASE: &str = "dropAllRolesFromDatabase";
    pub const DROP_ALL_USERS_FROM_DATABASE: &str = "dropAllUsersFromDatabase";
    pub const DROP_COLLECTION: &str = "dropCollection";
    pub const DROP_DATABASE: &str = "dropDatabase";
    pub const DROP_INDEX: &str = "dropIndex";
    pub const DROP_ROLE: &str = "dropRole";
    pub const DROP_USER: &str = "dropUser";
    pub const GRANT_PRIVILEGES_TO_ROLE: &str = "grantPrivilegesToRole";
    pub const GRANT_ROLES_TO_ROLE: &str = "grantRolesToRole";
    pub const GRANT_ROLES_TO_USER: &str = "grantRolesToUser";
    pub const LOGOUT: &str = "logout";
    pub const RENAME_COLLECTION: &str = "renameCollection";
    pub const REVOKE_PRIVILEGES_FROM_ROLE: &str = "revokePrivilegesFromRole";
    pub const REVOKE_ROLES_FROM_ROLE: &str = "revokeRolesFromRole";
    pub const REVOKE_ROLES_FROM_USER: &str = "revokeRolesFromUser";
    pub const ROTATE_LOG: &str = "rotateLog";
    pub const SHUTDOWN: &str = "shutdown";
    pub const STARTUP: &str = "startup";
    pub const UPDATE_ROLE: &str = "updateRole";
    pub const UPDATE_USER: &str = "updateUser";

    /// Events were dropped, because the log could not be written. Selkie's own kind.
    pub const EVENTS_LOST: &str = "eventsLost";
    /// The line before this one is incomplete, because the process was killed while it wrote.
    /// Selkie's own kind.
    pub const TORN_LINE: &str = "tornLine";

    /// The kinds that a filter may name. The others describe the log itself, and are always
    /// written.
    pub const FILTERED: &[&str] = &[
        APPLICATION_MESSAGE,
        AUTH_CHECK,
        AUTHENTICATE,
        CLIENT_METADATA,
        CREATE_COLLECTION,
        CREATE_DATABASE,
        CREATE_INDEX,
        CREATE_ROLE,
        CREATE_USER,
        DIRECT_AUTH_MUTATION,
        DROP_ALL_ROLES_FROM_DATABASE,
        DROP_ALL_USERS_FROM_DATABASE,
        DROP_COLLECTION,
        DROP_DATABASE,
        DROP_INDEX,
        DROP_ROLE,
        DROP_USER,
        GRANT_PRIVILEGES_TO_ROLE,
        GRANT_ROLES_TO_ROLE,
        GRANT_ROLES_TO_USER,
        LOGOUT,
        RENAME_COLLECTION,
        REVOKE_PRIVILEGES_FROM_ROLE,
        REVOKE_ROLES_FROM_ROLE,
        REVOKE_ROLES_FROM_USER,
        UPDATE_ROLE,
        UPDATE_USER,
    ];
}

/// A user's or a role's name with its database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    pub name: String,
    pub db: String,
}

/// One end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    Ip(SocketAddr),
    /// A Unix socket. The client's end has no path: it is `anonymous`.
    Unix(String),
    /// The server itself.
    System,
}

/// The connection that causes events, and its users.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Identifies the connection.
    pub uuid: [u8; 16],
    pub local: Endpoint,
    pub remote: Endpoint,
    pub users: Arc<[Name]>,
    pub roles: Arc<[Name]>,
}

impl Subject {
    /// Returns the subject of events that the server itself causes.
    pub fn system(uuid: [u8; 16]) -> Subject {
        let nobody: Arc<[Name]> = Arc::new([]);
        Subject { uuid, local: Endpoint::System, remote: Endpoint::System, users: nobody.clone(), roles: nobody }
    }
}

/// Something that happened.
#[derive(Clone, Debug)]
pub struct Event {
    /// One of [`kind`].
    pub kind: &'static str,
    /// Milliseconds since 1970.
    pub ts_ms: i64,
    pub subject: Subject,
    pub param: DocBuf,
    /// The error's code; 0 for success.
    pub result: i32,
}
