//! A session, which executes statements. It may move between threads, and is used by one at a time.

use crate::database::Database;
use crate::{ffi, thread};
use mariadb_wire::ok::{OkPacket, STATUS_IN_TRANSACTION};
use mariadb_wire::reader::write_bytes;
use mariadb_wire::{ColumnType, Param};
use std::ffi::{CStr, c_char, c_uint};
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

/// Represents NULL in a row of text.
const TEXT_NULL: u8 = 0xFB;

/// First words of frequent statements that commit nothing.
const NEVER_COMMIT: [&str; 5] = ["SET ", "START ", "SAVEPOINT ", "ROLLBACK", "KILL "];

/// A statement that was not executed, with MariaDB's error code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    pub code: u16,
    pub message: String,
}

/// The result of a statement, row by row as in the client/server protocol: binary rows of prepared
/// statements for [`mariadb_wire::row::BinaryRow`], others for [`mariadb_wire::row::TextRow`].
#[derive(Debug, Default)]
pub struct Rows {
    pub payloads: Vec<u8>,
    /// The end of each row in `payloads`.
    pub ends: Vec<usize>,
    pub types: Vec<ColumnType>,
}

impl Rows {
    pub fn clear(&mut self) {
        self.payloads.clear();
        self.ends.clear();
        self.types.clear();
    }

    /// Returns the range of a row in `payloads`.
    pub fn range(&self, row: usize) -> Option<Range<usize>> {
        let start = if row == 0 { 0 } else { *self.ends.get(row - 1)? };
        Some(start..*self.ends.get(row)?)
    }
}

/// A prepared statement of one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatementId(usize);

pub struct Session {
    connection: NonNull<ffi::Mysql>,
    statements: Vec<Option<Prepared>>,
    /// Declared last: the library must not stop before the session is closed.
    database: Arc<Database>,
}

struct Prepared {
    statement: NonNull<ffi::MysqlStmt>,
    params: usize,
}

// SAFETY: the library keeps no data of a connection in the thread between two calls (each call
// takes over the thread's data), and `&mut self` keeps two threads from calling at the same time.
// `Database` is Sync.
unsafe impl Send for Session {}

impl Session {
    pub(crate) fn open(database: Arc<Database>) -> Result<Session, Refused> {
        thread::enter();
        let (mut code, mut message) = (0, [0_u8; 512]);
        // SAFETY: the buffer is zeroed and one byte longer than the longest message, so that it
        // ends with a zero.
        let connection = unsafe {
            ffi::embedded_connect(&mut code, message.as_mut_ptr().cast::<c_char>(), message.len() as u64 - 1)
        };
        let Some(connection) = NonNull::new(connection) else {
            let message = CStr::from_bytes_until_nul(&message).unwrap_or_default().to_string_lossy().into_owned();
            return Err(Refused { code: code as u16, message });
        };
        Ok(Session { connection, statements: Vec::new(), database })
    }

    /// Returns the session's id, as in `KILL`.
    pub fn id(&self) -> u64 {
        // SAFETY: the connection is open.
        unsafe { ffi::mysql_thread_id(self.connection.as_ptr()) }
    }

    /// Executes a statement without parameters; its rows are text. Its commit is durable when this
    /// returns.
    pub fn query(&mut self, sql: &str, rows: &mut Rows) -> Result<OkPacket, Refused> {
        let ok = self.run(sql, rows)?;
        let may_have_committed = rows.types.is_empty() && !NEVER_COMMIT.iter().any(|word| sql.starts_with(word));
        if may_have_committed { self.make_durable(ok) } else { Ok(ok) }
    }

    fn run(&mut self, sql: &str, rows: &mut Rows) -> Result<OkPacket, Refused> {
        thread::enter();
        rows.clear();
        let connection = self.connection.as_ptr();
        // SAFETY: the pointer and length are those of the text, which the library does not keep.
        if unsafe { ffi::mysql_real_query(connection, sql.as_ptr().cast(), sql.len() as u64) } != 0 {
            return Err(self.refusal());
        }
        // SAFETY: the statement has been executed.
        let columns = unsafe { ffi::mysql_field_count(connection) };
        if columns > 0 {
            self.take_text_rows(columns, rows)?;
            return Ok(self.ok(0, 0));
        }
        // SAFETY: as above.
        let (affected, id) = unsafe { (ffi::mysql_affected_rows(connection), ffi::mysql_insert_id(connection)) };
        Ok(self.ok(affected, id))
    }

    fn take_text_rows(&mut self, columns: c_uint, rows: &mut Rows) -> Result<(), Refused> {
        // SAFETY: the statement has a result that was not fetched.
        let Some(result) = NonNull::new(unsafe { ffi::mysql_store_result(self.connection.as_ptr()) }) else {
            return Err(self.refusal());
        };
        let result = result.as_ptr();
        // SAFETY: a row has as many pointers and lengths as there are columns, valid until the next
        // row is fetched; a value that is not NULL has that many bytes. The result is freed once.
        unsafe {
            rows.types.extend((0..columns).map(|column| ColumnType(ffi::embedded_text_column_type(result, column))));
            while let Some(row) = NonNull::new(ffi::mysql_fetch_row(result)) {
                let lengths = ffi::mysql_fetch_lengths(result);
                for column in 0..columns as usize {
                    match NonNull::new(*row.as_ptr().add(column)) {
                        Some(value) => {
                            let length = *lengths.add(column) as usize;
                            let value = std::slice::from_raw_parts(value.as_ptr().cast::<u8>(), length);
                            write_bytes(value, &mut rows.payloads);
                        }
                        None => rows.payloads.push(TEXT_NULL),
                    }
                }
                rows.ends.push(rows.payloads.len());
            }
            ffi::mysql_free_result(result);
        }
        Ok(())
    }

    /// Prepares a statement.
    pub fn prepare(&mut self, sql: &str) -> Result<StatementId, Refused> {
        thread::enter();
        // SAFETY: the connection is open; a statement that failed to prepare is closed once, after
        // its error was read.
        unsafe {
            let Some(statement) = NonNull::new(ffi::mysql_stmt_init(self.connection.as_ptr())) else {
                return Err(self.refusal());
            };
            if ffi::mysql_stmt_prepare(statement.as_ptr(), sql.as_ptr().cast(), sql.len() as u64) != 0 {
                let refusal = statement_refusal(statement);
                ffi::mysql_stmt_close(statement.as_ptr());
                return Err(refusal);
            }
            let params = ffi::mysql_stmt_param_count(statement.as_ptr()) as usize;
            let prepared = Some(Prepared { statement, params });
            let free = self.statements.iter().position(Option::is_none);
            let position = free.unwrap_or(self.statements.len());
            match self.statements.get_mut(position) {
                Some(slot) => *slot = prepared,
                None => self.statements.push(prepared),
            }
            Ok(StatementId(position))
        }
    }

    /// Executes a prepared statement; its rows are binary. Its commit is durable when this returns.
    pub fn execute(
        &mut self,
        statement: StatementId,
        params: &[Param<'_>],
        rows: &mut Rows,
    ) -> Result<OkPacket, Refused> {
        thread::enter();
        rows.clear();
        let Some(Some(prepared)) = self.statements.get(statement.0) else {
            return Err(misuse("a statement that was closed"));
        };
        if prepared.params != params.len() {
            return Err(misuse("not as many parameters as the statement has"));
        }
        let bound = BoundParams::new(params);
        let statement = prepared.statement;
        let raw = statement.as_ptr();
        // SAFETY: the number of parameters is the statement's, and their values live until the call
        // returns. Rows are valid until the result is freed; the pointers skip their first byte.
        unsafe {
            if ffi::embedded_execute(raw, bound.as_ptr(), params.len() as c_uint) != 0 {
                let refusal = statement_refusal(statement);
                ffi::mysql_stmt_free_result(raw);
                return Err(refusal);
            }
            let columns = ffi::mysql_stmt_field_count(raw);
            if columns > 0 {
                rows.types.extend((0..columns).map(|column| ColumnType(ffi::embedded_column_type(raw, column))));
                let mut row = ffi::embedded_first_row(raw);
                while !row.is_null() {
                    let mut length = 0;
                    let bytes = ffi::embedded_row(row, &mut length);
                    let bytes = std::slice::from_raw_parts(bytes, (length as usize).saturating_sub(1));
                    rows.payloads.push(0);
                    rows.payloads.extend_from_slice(bytes);
                    rows.ends.push(rows.payloads.len());
                    row = ffi::embedded_next_row(row);
                }
                ffi::mysql_stmt_free_result(raw);
                return Ok(self.ok(0, 0));
            }
            let ok = self.ok(ffi::mysql_stmt_affected_rows(raw), ffi::mysql_stmt_insert_id(raw));
            if ok.affected_rows > 0 { self.make_durable(ok) } else { Ok(ok) }
        }
    }

    /// Closes a prepared statement.
    pub fn close_statement(&mut self, statement: StatementId) {
        thread::enter();
        if let Some(prepared) = self.statements.get_mut(statement.0).and_then(Option::take) {
            // SAFETY: taken out of the list, so closed once.
            unsafe { ffi::mysql_stmt_close(prepared.statement.as_ptr()) };
        }
    }

    /// Waits until the log of committed transactions is written.
    ///
    /// InnoDB (10.11) only begins to write it before a COMMIT returns. A server waits for the end
    /// before it sends its answer, but the library sends none: a kill could lose half a second's
    /// transactions. FLUSH waits, which takes hardly any time if all is written.
    fn make_durable(&mut self, ok: OkPacket) -> Result<OkPacket, Refused> {
        if ok.status & STATUS_IN_TRANSACTION == 0 {
            self.run("FLUSH ENGINE LOGS", &mut Rows::default())?;
        }
        Ok(ok)
    }

    fn ok(&self, affected_rows: u64, last_insert_id: u64) -> OkPacket {
        let connection = self.connection.as_ptr();
        // SAFETY: the connection is open, and a statement has been executed.
        let (status, warnings) = unsafe { (ffi::embedded_status(connection), ffi::mysql_warning_count(connection)) };
        let (status, warnings) = (status as u16, warnings.min(u32::from(u16::MAX)) as u16);
        OkPacket { affected_rows, last_insert_id, status, warnings, transaction: None }
    }

    fn refusal(&self) -> Refused {
        let connection = self.connection.as_ptr();
        // SAFETY: the connection is open; the message is stored in it and ends with a zero.
        unsafe { refused(ffi::mysql_errno(connection), ffi::mysql_error(connection)) }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        thread::enter();
        for prepared in self.statements.drain(..).flatten() {
            // SAFETY: taken out of the list, so closed once, and before the connection.
            unsafe { ffi::mysql_stmt_close(prepared.statement.as_ptr()) };
        }
        // SAFETY: the connection is not used after this.
        unsafe { ffi::mysql_close(self.connection.as_ptr()) };
        self.database.session_ended();
    }
}

/// # Safety
/// The statement is open.
// SAFETY: the contract is stated above.
unsafe fn statement_refusal(statement: NonNull<ffi::MysqlStmt>) -> Refused {
    // SAFETY: the message is stored in the statement and ends with a zero.
    unsafe { refused(ffi::mysql_stmt_errno(statement.as_ptr()), ffi::mysql_stmt_error(statement.as_ptr())) }
}

/// # Safety
/// The message ends with a zero.
// SAFETY: the contract is stated above.
unsafe fn refused(code: c_uint, message: *const c_char) -> Refused {
    // SAFETY: by this function's contract.
    let message = unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned();
    Refused { code: code as u16, message }
}

fn misuse(message: &str) -> Refused {
    /// ER_WRONG_ARGUMENTS
    const WRONG_ARGUMENTS: u16 = 1210;
    Refused { code: WRONG_ARGUMENTS, message: message.to_owned() }
}

/// Up to this many parameters need no allocation.
const INLINE_PARAMS: usize = 4;

/// Parameters in the library's format.
struct BoundParams<'p> {
    few: [ffi::BoundParam; INLINE_PARAMS],
    many: Vec<ffi::BoundParam>,
    _params: std::marker::PhantomData<&'p ()>,
}

impl<'p> BoundParams<'p> {
    const NOTHING: ffi::BoundParam = ffi::BoundParam {
        value: std::ptr::null(),
        length: 0,
        column_type: ColumnType::NULL.0 as c_uint,
        is_unsigned: 0,
    };

    fn new(params: &'p [Param<'p>]) -> Self {
        let mut few = [Self::NOTHING; INLINE_PARAMS];
        let mut many = Vec::new();
        if params.len() <= INLINE_PARAMS {
            few.iter_mut().zip(params).for_each(|(slot, param)| *slot = bind(param));
        } else {
            many.extend(params.iter().map(bind));
        }
        BoundParams { few, many, _params: std::marker::PhantomData }
    }

    fn as_ptr(&self) -> *const ffi::BoundParam {
        if self.many.is_empty() { self.few.as_ptr() } else { self.many.as_ptr() }
    }
}

/// Returns a parameter that points to the value.
fn bind(param: &Param<'_>) -> ffi::BoundParam {
    let (value, length, column_type) = match param {
        Param::Null => return BoundParams::NOTHING,
        Param::Unsigned(number) => (std::ptr::from_ref(number).cast(), 8, ColumnType::LONG_LONG),
        Param::Signed(number) => (std::ptr::from_ref(number).cast(), 8, ColumnType::LONG_LONG),
        Param::Double(number) => (std::ptr::from_ref(number).cast(), 8, ColumnType::DOUBLE),
        Param::Text(bytes) => (bytes.as_ptr().cast(), bytes.len() as u64, ColumnType::VAR_STRING),
        Param::Bytes(bytes) => (bytes.as_ptr().cast(), bytes.len() as u64, ColumnType::BLOB),
    };
    let is_unsigned = c_uint::from(matches!(param, Param::Unsigned(_)));
    ffi::BoundParam { value, length, column_type: c_uint::from(column_type.0), is_unsigned }
}
