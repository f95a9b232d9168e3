//! store-mariadb
