//! The texts of statements that change how a server replicates. They take no parameters, so values
//! are quoted.

use crate::settings::Account;
use mariadb_client::{Address, TlsMode};

/// Quotes a text, for sessions without NO_BACKSLASH_ESCAPES.
pub fn literal(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('\'');
    for character in text.chars() {
        match character {
            '\'' | '\\' => quoted.extend(['\\', character]),
            '\0' => quoted.push_str("\\0"),
            character => quoted.push(character),
        }
    }
    quoted.push('\'');
    quoted
}

/// Returns the statement that makes a server follow another one by GTID, from the position that it
/// has replicated.
pub fn change_master(source: &Address, tls: TlsMode, account: &Account) -> String {
    let (host, port) = match source {
        Address::Tcp { host, port } => (host.as_str(), *port),
        // Servers of monitors are reached by TCP.
        Address::Socket(_) => ("localhost", 3306),
    };
    let ssl = match tls {
        TlsMode::Disabled | TlsMode::Preferred => "",
        TlsMode::Required | TlsMode::VerifyCa | TlsMode::VerifyIdentity => ", MASTER_SSL=1",
    };
    format!(
        "CHANGE MASTER TO MASTER_HOST={}, MASTER_PORT={port}, MASTER_USER={}, MASTER_PASSWORD={}, \
         MASTER_CONNECT_RETRY=1, MASTER_USE_GTID=slave_pos{ssl}",
        literal(host),
        literal(&account.user),
        literal(&account.password.0),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Secret;

    #[test]
    fn values_are_quoted() {
        assert_eq!(literal(r"it's \ this"), r"'it\'s \\ this'");
        let account = Account { user: "r'".into(), password: Secret("p".into()) };
        let source = Address::Tcp { host: "db1".into(), port: 3307 };
        assert_eq!(
            change_master(&source, TlsMode::Required, &account),
            "CHANGE MASTER TO MASTER_HOST='db1', MASTER_PORT=3307, MASTER_USER='r\\'', MASTER_PASSWORD='p', \
             MASTER_CONNECT_RETRY=1, MASTER_USE_GTID=slave_pos, MASTER_SSL=1"
        );
    }
}
