//! Failures of statements and connections, and their translation to MongoDB's errors.

use error::{Code, Error};
use mariadb_wire::err::ErrPacket;
use std::fmt;

/// A statement or a connection failed.
#[derive(Clone, Debug)]
pub enum Failure {
    /// The server refused a statement; the connection is still usable.
    Sql { code: u16, message: String },
    /// The connection is lost or out of protocol. The outcome of its statements is unknown.
    Lost(String),
    /// The server has reached max_connections; no statement was sent.
    Full(String),
    /// The servers had no primary for as long as an operation waits; no statement was sent.
    NoPrimary(String),
    /// An error of the gateway's own: a document that cannot be decoded, a sink that failed.
    Other(Error),
}

pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// Server error codes that the gateway acts on.
/// Source: <https://mariadb.com/kb/en/mariadb-error-codes/>
pub mod server_error {
    pub const SCHEMA_ACCESS_DENIED: u16 = 1044;
    pub const ACCESS_DENIED: u16 = 1045;
    pub const COLUMN_NOT_NULL: u16 = 1048;
    pub const UNKNOWN_SCHEMA: u16 = 1049;
    pub const TABLE_EXISTS: u16 = 1050;
    pub const UNKNOWN_TABLE: u16 = 1051;
    pub const UNKNOWN_COLUMN: u16 = 1054;
    pub const SHUTDOWN: u16 = 1053;
    pub const COLUMN_EXISTS: u16 = 1060;
    pub const KEY_EXISTS: u16 = 1061;
    pub const NOTHING_TO_DROP: u16 = 1091;
    pub const SCHEMA_EXISTS: u16 = 1007;
    pub const NO_SCHEMA_TO_DROP: u16 = 1008;
    pub const SCHEMA_NOT_EMPTY: u16 = 1010;
    pub const TRIGGER_EXISTS: u16 = 1359;
    pub const NO_SUCH_TRIGGER: u16 = 1360;
    pub const DEFINITION_CHANGED: u16 = 1412;
    pub const NEEDS_PREPARING: u16 = 1615;
    pub const UNKNOWN_STATEMENT: u16 = 1243;
    pub const NO_SUCH_THREAD: u16 = 1094;
    pub const DUPLICATE_ENTRY: u16 = 1062;
    pub const TABLE_ACCESS_DENIED: u16 = 1142;
    pub const COLUMN_ACCESS_DENIED: u16 = 1143;
    pub const NO_SUCH_TABLE: u16 = 1146;
    pub const NO_SUCH_GRANT: u16 = 1141;
    pub const NO_SUCH_TABLE_GRANT: u16 = 1147;
    pub const PACKET_TOO_LARGE: u16 = 1153;
    pub const UNKNOWN_VARIABLE: u16 = 1193;
    pub const LOCK_WAIT_TIMEOUT: u16 = 1205;
    pub const DEADLOCK: u16 = 1213;
    pub const QUERY_INTERRUPTED: u16 = 1317;
    pub const DEFINITION_TOO_LARGE: u16 = 1117;
    pub const ROW_TOO_LARGE: u16 = 1118;
    pub const TOO_MANY_KEYS: u16 = 1069;
    pub const UNKNOWN_KEY: u16 = 1176;
    pub const CONNECTION_KILLED: u16 = 1927;
    pub const TABLE_FULL: u16 = 1114;
    pub const DISK_FULL: u16 = 1021;
    pub const DATA_TOO_LONG: u16 = 1406;
    pub const CHECK_VIOLATED: u16 = 4025;
    /// Also for other options that prevent a statement, which the message names.
    pub const READ_ONLY: u16 = 1290;
    pub const READ_ONLY_TRANSACTION: u16 = 1792;
    /// By a node of a Galera cluster that is not ready.
    pub const NOT_READY: u16 = 1047;
    pub const TOO_MANY_CONNECTIONS: u16 = 1040;
    pub const RECORD_CHANGED: u16 = 1020;
    pub const BINLOG_READ: u16 = 1236;
    pub const PRIVILEGE_MISSING: u16 = 1227;
    /// Of Spider, whose data servers are out of reach.
    pub const NO_FOREIGN_SERVER: u16 = 1429;
    pub const FOREIGN_SERVER_GONE: u16 = 12701;
}

impl Failure {
    pub fn from_packet(packet: &ErrPacket<'_>) -> Failure {
        let message = String::from_utf8_lossy(packet.message).into_owned();
        match packet.code {
            server_error::CONNECTION_KILLED | server_error::SHUTDOWN => Failure::Lost(message),
            // The statement was pipelined behind a preparation that was refused, for example
            // because the table is being renamed.
            server_error::UNKNOWN_STATEMENT => Failure::Sql { code: server_error::NEEDS_PREPARING, message },
            code => Failure::Sql { code, message },
        }
    }

    /// Returns the server's error code if it refused a statement.
    pub fn sql_code(&self) -> Option<u16> {
        match self {
            Failure::Sql { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// Returns whether another transaction caused the failure, so that a retry may succeed.
    pub fn is_contention(&self) -> bool {
        matches!(
            self.sql_code(),
            Some(
                server_error::LOCK_WAIT_TIMEOUT
                    | server_error::DEADLOCK
                    | server_error::RECORD_CHANGED
                    | server_error::DEFINITION_CHANGED
                    | server_error::NEEDS_PREPARING
            )
        )
    }

    /// Returns whether the server has refused one statement for what it contains, and surely has
    /// not rolled its transaction back.
    pub(crate) fn refuses_only_statement(&self) -> bool {
        matches!(
            self.sql_code(),
            Some(
                server_error::DUPLICATE_ENTRY
                    | server_error::CHECK_VIOLATED
                    | server_error::DATA_TOO_LONG
                    | server_error::UNKNOWN_COLUMN
                    | server_error::UNKNOWN_KEY
                    | server_error::NO_SUCH_TABLE
                    | server_error::UNKNOWN_SCHEMA
            )
        )
    }

    /// Returns whether a change of a definition met another one of the same table or schema, so
    /// that it must read the definition again and retry.
    pub fn is_lost_race(&self) -> bool {
        let lost_race = matches!(
            self.sql_code(),
            Some(
                server_error::TABLE_EXISTS
                    | server_error::COLUMN_EXISTS
                    | server_error::KEY_EXISTS
                    | server_error::NOTHING_TO_DROP
                    | server_error::SCHEMA_EXISTS
                    | server_error::NO_SCHEMA_TO_DROP
                    | server_error::SCHEMA_NOT_EMPTY
                    | server_error::TRIGGER_EXISTS
                    | server_error::NO_SUCH_TRIGGER
            )
        );
        lost_race || self.is_contention() || self.is_missing_table()
    }

    /// Returns whether the server accepts no writes at present, so that the other statements of a
    /// batch would fail too: it is read-only, or a node of a Galera cluster that is not ready.
    pub fn is_not_writable(&self) -> bool {
        match self {
            // The same code is sent for other options, such as --secure-file-priv.
            Failure::Sql { code: server_error::READ_ONLY, message } => message.contains("--read-only"),
            _ => matches!(self.sql_code(), Some(server_error::READ_ONLY_TRANSACTION | server_error::NOT_READY)),
        }
    }

    /// Returns whether the server cannot reach another one that has a part of the table.
    pub fn lacks_data_server(&self) -> bool {
        matches!(self.sql_code(), Some(server_error::NO_FOREIGN_SERVER | server_error::FOREIGN_SERVER_GONE))
    }

    /// Returns whether the same may succeed on another primary.
    pub fn awaits_primary(&self) -> bool {
        matches!(self, Failure::NoPrimary(_)) || self.is_not_writable()
    }

    /// Returns whether the statement was killed.
    pub fn is_interrupted(&self) -> bool {
        self.sql_code() == Some(server_error::QUERY_INTERRUPTED)
    }

    /// Returns whether the table or its schema does not exist.
    pub fn is_missing_table(&self) -> bool {
        matches!(
            self.sql_code(),
            Some(server_error::NO_SUCH_TABLE | server_error::UNKNOWN_SCHEMA | server_error::UNKNOWN_TABLE)
        )
    }

    /// Returns whether the user lacks the privilege on the table or schema, whether it exists or
    /// not.
    pub fn is_access_denied(&self) -> bool {
        matches!(
            self.sql_code(),
            Some(
                server_error::SCHEMA_ACCESS_DENIED
                    | server_error::TABLE_ACCESS_DENIED
                    | server_error::COLUMN_ACCESS_DENIED
            )
        )
    }

    /// Returns the failure of a statement executed under a role: the server's message would name
    /// the account of the connection instead of the user.
    pub(crate) fn under_role(self) -> Failure {
        let is_denied = self.is_access_denied();
        match self {
            Failure::Sql { code, message } if is_denied => {
                let what = match message.split_once(" command denied to user ") {
                    Some((command, rest)) => {
                        format!("{command} for {}", rest.split_once(" for ").map_or("it", |(_, object)| object))
                    }
                    None => "access to the database".to_owned(),
                };
                Failure::Sql { code, message: format!("the grants of the user's role do not allow {what}") }
            }
            other => other,
        }
    }

    /// Returns whether the plan's index was dropped, so that the query must be planned again.
    pub fn is_killed_plan(&self) -> bool {
        matches!(self, Failure::Other(error) if error.code() == Code::QUERY_PLAN_KILLED)
    }

    pub fn is_lost(&self) -> bool {
        matches!(self, Failure::Lost(_))
    }

    pub fn io(error: &std::io::Error) -> Failure {
        Failure::Lost(format!("the connection to MariaDB was lost: {error}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Sql { code, message } => write!(f, "MariaDB error {code}: {message}"),
            Failure::Lost(message) | Failure::Full(message) | Failure::NoPrimary(message) => write!(f, "{message}"),
            Failure::Other(error) => write!(f, "{error}"),
        }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Error {
        let code = match &failure {
            Failure::Other(error) => return error.clone(),
            // The code of a router that cannot reach a shard. From code 91 drivers would conclude
            // that the gateway itself is shutting down.
            Failure::Lost(_) | Failure::NoPrimary(_) => Code::HOST_UNREACHABLE,
            Failure::Full(_) => Code::NETWORK_INTERFACE_EXCEEDED_TIME_LIMIT,
            // As mongos reports what its shards answer. After 10107 pymongo waits for the
            // next `hello`, up to 10 s.
            _ if failure.is_not_writable() || failure.lacks_data_server() => Code::HOST_UNREACHABLE,
            Failure::Sql { code, .. } => match *code {
                server_error::SCHEMA_ACCESS_DENIED
                | server_error::ACCESS_DENIED
                | server_error::TABLE_ACCESS_DENIED
                | server_error::COLUMN_ACCESS_DENIED => Code::UNAUTHORIZED,
                server_error::LOCK_WAIT_TIMEOUT
                | server_error::DEADLOCK
                | server_error::RECORD_CHANGED
                | server_error::DEFINITION_CHANGED
                | server_error::NEEDS_PREPARING => Code::WRITE_CONFLICT,
                server_error::PACKET_TOO_LARGE => Code::BSON_OBJECT_TOO_LARGE,
                server_error::QUERY_INTERRUPTED => Code::INTERRUPTED,
                server_error::TABLE_FULL | server_error::DISK_FULL => Code::OUT_OF_DISK_SPACE,
                server_error::TOO_MANY_CONNECTIONS => Code::SHUTDOWN_IN_PROGRESS,
                server_error::NO_SUCH_TABLE | server_error::UNKNOWN_SCHEMA => Code::NAMESPACE_NOT_FOUND,
                server_error::DATA_TOO_LONG => Code::BAD_VALUE,
                server_error::CHECK_VIOLATED => Code::DOCUMENT_VALIDATION_FAILURE,
                _ => Code::OPERATION_FAILED,
            },
        };
        Error::new(code, failure.to_string())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Other(error)
    }
}

impl From<mariadb_wire::Malformed> for Failure {
    fn from(malformed: mariadb_wire::Malformed) -> Failure {
        Failure::Lost(format!("MariaDB sent a malformed packet: {malformed}"))
    }
}

impl From<mariadb_wire::packet::TooLarge> for Failure {
    fn from(too_large: mariadb_wire::packet::TooLarge) -> Failure {
        Failure::Lost(format!("MariaDB sent an oversized packet: {too_large}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_that_accept_no_writes_are_unreachable() {
        let code = |code, message: &str| Error::from(Failure::Sql { code, message: message.into() }).code();
        let running_with = |option| {
            format!("The MariaDB server is running with the {option} option so it cannot execute this statement")
        };
        assert_eq!(code(1290, &running_with("--read-only")), Code::HOST_UNREACHABLE);
        assert_eq!(code(1290, &running_with("--secure-file-priv")), Code::OPERATION_FAILED);
        assert_eq!(code(1792, "Cannot execute statement in a READ ONLY transaction"), Code::HOST_UNREACHABLE);
        assert_eq!(code(1429, "Unable to connect to foreign data source: data2"), Code::HOST_UNREACHABLE);
        assert_eq!(code(1047, "WSREP has not yet prepared node for application use"), Code::HOST_UNREACHABLE);
    }

    #[test]
    fn refusals_under_a_role_do_not_name_the_account() {
        let check = |code, message: &str, expected: &str| {
            let failure = Failure::Sql { code, message: message.into() }.under_role();
            assert_eq!(Error::from(failure.clone()).code(), Code::UNAUTHORIZED);
            let Failure::Sql { message, .. } = failure else { panic!("{failure}") };
            assert_eq!(message, format!("the grants of the user's role do not allow {expected}"));
        };
        let denied = "SELECT command denied to user 'x'@'h' for table `shop`.`for `";
        check(server_error::TABLE_ACCESS_DENIED, denied, "SELECT for table `shop`.`for `");
        let column = "UPDATE command denied to user ''@'%' for column 'doc' in table 'cars'";
        check(server_error::COLUMN_ACCESS_DENIED, column, "UPDATE for column 'doc' in table 'cars'");
        let schema = "Access denied for user 'x'@'h' to database 'shop'";
        check(server_error::SCHEMA_ACCESS_DENIED, schema, "access to the database");
    }
}
