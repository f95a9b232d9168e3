//! A SELECT that was answered from the cache.

use crate::context::CachedResult;
use std::rc::Rc;
use std::sync::Arc;

/// A SELECT that was answered from the cache, after the last statement that the server received.
pub struct CachedSelect {
    /// The command.
    pub packet: Vec<u8>,
    /// The statement, where the command does not contain it.
    pub sql: Option<Rc<[u8]>>,
    /// Of a prepared statement, where the server's id of it is not the client's: that, and the
    /// packet that prepares it.
    pub prepared: Option<(u32, Rc<[u8]>)>,
    pub result: Arc<CachedResult>,
}

impl CachedSelect {
    /// Returns whether FOUND_ROWS() is the number of the result's rows.
    pub fn counts_all_rows(&self) -> bool {
        let sql = self.sql.as_deref().unwrap_or(&self.packet).to_ascii_uppercase();
        ![&b"LIMIT"[..], b"OFFSET", b"FETCH", b"UNION", b"EXCEPT", b"INTERSECT"]
            .iter()
            .any(|word| memchr::memmem::find(&sql, word).is_some())
    }
}
