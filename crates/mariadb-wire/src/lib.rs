//! mariadb-wire
