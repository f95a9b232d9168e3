//! A session: statements in, rows out. It may go from thread to thread, and is used by one at a time.

use crate::database::Database;
use crate::{ffi, thread};
use mariadb_wire::ok::{OkPacket, STATUS_IN_TRANSACTION};
use mariadb_wire::reader::write_bytes;
use mariadb_wire::{ColumnType, Param};
use std::ffi::{CStr, c_char, c_uint};
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

/// What a row of text has in place of a value that is NULL.
const TEXT_NULL: u8 = 0xFB;

/// What statements begin with that are often in transactions and leave nothing to be written.
const NEVER_COMMIT: [&str; 5] = ["SET ", "START ", "SAVEPOINT ", "ROLLBACK", "KILL "];

/// A statement that was not executed, with MariaDB's error code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    pub code: u16,
    pub message: String,
}

/// The whole result of a statement, row by row as in the client/server protocol: binary ones (of prepared statements) for
/// [`mariadb_wire::row::BinaryRow`], others for [`mariadb_wire::row::TextRow`].
#[derive(Debug, Default)]
pub struct Rows {
    pub payloads: Vec<u8>,
    /// Where each row ends in `payloads`.
    pub ends: Vec<usize>,
    pub types: Vec<ColumnType>,
}

impl Rows {
    pub fn clear(&mut self) {
        self.payloads.clear();
        self.ends.clear();
        self.types.clear();
    }

    /// Where a row lies in `payloads`.
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

// SAFETY: the library keeps nothing of a connection in the thread between two calls (it takes the thread's data over with each),
// and `&mut self` keeps two threads from calling at the same time. `Database` is Sync.
unsafe impl Send for Session {}

impl Session {
    pub(crate) fn open(database: Arc<Database>) -> Result<Session, Refused> {
        thread::enter();
        let (mut code, mut message) = (0, [0_u8; 512]);
        // SAFETY: the message is zeroed and one byte longer than what is written at the most, so that it ends with a zero.
        let connection = unsafe {
            ffi::embedded_connect(&mut code, message.as_mut_ptr().cast::<c_char>(), message.len() as u64 - 1)
        };
        let Some(connection) = NonNull::new(connection) else {
            let message = CStr::from_bytes_until_nul(&message).unwrap_or_default().to_string_lossy().into_owned();
            return Err(Refused { code: code as u16, message });
        };
        Ok(Session { connection, statements: Vec::new(), database })
    }

    /// By which others may name it, as in `KILL`.
    pub fn id(&self) -> u64 {
        // SAFETY: the connection is open.
        unsafe { ffi::mysql_thread_id(self.connection.as_ptr()) }
    }

    /// Executes a statement without parameters. Its rows are those of a text protocol. What it has committed outlives a kill when this returns.
    pub fn query(&mut self, sql: &str, rows: &mut Rows) -> Result<OkPacket, Refused> {
        let ok = self.run(sql, rows)?;
        let may_have_committed = rows.types.is_empty() && !NEVER_COMMIT.iter().any(|word| sql.starts_with(word));
        if may_have_committed { self.settled(ok) } else { Ok(ok) }
    }

    fn run(&mut self, sql: &str, rows: &mut Rows) -> Result<OkPacket, Refused> {
        thread::enter();
        rows.clear();
        let connection = self.connection.as_ptr();
        // SAFETY: the text is as long as it is said to be, and not kept.
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
        // SAFETY: the statement has a result, which nobody has fetched.
        let Some(result) = NonNull::new(unsafe { ffi::mysql_store_result(self.connection.as_ptr()) }) else {
            return Err(self.refusal());
        };
        let result = result.as_ptr();
        // SAFETY: there are so many columns; a row has as many pointers and lengths, which hold until the next row is fetched, and a value
        // that is not NULL has so many bytes. The result is freed once.
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

    pub fn prepare(&mut self, sql: &str) -> Result<StatementId, Refused> {
        thread::enter();
        // SAFETY: the connection is open; a statement that could not be prepared is closed once, after its error was read.
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
            let place = free.unwrap_or(self.statements.len());
            match self.statements.get_mut(place) {
                Some(slot) => *slot = prepared,
                None => self.statements.push(prepared),
            }
            Ok(StatementId(place))
        }
    }

    /// Executes a prepared statement. Its rows are binary ones. What it has committed outlives a kill when this returns.
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
        // SAFETY: there are as many parameters as the statement has, and what they point to lives until the call returns. Rows lie in
        // the result until it is freed, and their first byte is missing from what they point to.
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
            if ok.affected_rows > 0 { self.settled(ok) } else { Ok(ok) }
        }
    }

    pub fn close_statement(&mut self, statement: StatementId) {
        thread::enter();
        if let Some(prepared) = self.statements.get_mut(statement.0).and_then(Option::take) {
            // SAFETY: taken out of the list, so closed once.
            unsafe { ffi::mysql_stmt_close(prepared.statement.as_ptr()) };
        }
    }

    /// Waits until the log of what was committed is written.
    ///
    /// InnoDB (10.11) only begins to write it before a COMMIT returns. A server waits for the end before it sends its answer, and the
    /// library sends nothing: half a second's transactions can be lost to a kill. FLUSH waits, which takes next to nothing if all is written.
    fn settled(&mut self, ok: OkPacket) -> Result<OkPacket, Refused> {
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
        // SAFETY: the connection is open; the message lies in it and ends with a zero.
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
        // SAFETY: nobody uses the connection any more.
        unsafe { ffi::mysql_close(self.connection.as_ptr()) };
        self.database.session_ended();
    }
}

/// # Safety
/// The statement is open.
// SAFETY: all that is promised is said above.
unsafe fn statement_refusal(statement: NonNull<ffi::MysqlStmt>) -> Refused {
    // SAFETY: the message lies in the statement and ends with a zero.
    unsafe { refused(ffi::mysql_stmt_errno(statement.as_ptr()), ffi::mysql_stmt_error(statement.as_ptr())) }
}

/// # Safety
/// The message ends with a zero.
// SAFETY: all that is promised is said above.
unsafe fn refused(code: c_uint, message: *const c_char) -> Refused {
    // SAFETY: as promised.
    let message = unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned();
    Refused { code: code as u16, message }
}

fn misuse(message: &str) -> Refused {
    /// ER_WRONG_ARGUMENTS
    const WRONG_ARGUMENTS: u16 = 1210;
    Refused { code: WRONG_ARGUMENTS, message: message.to_owned() }
}

/// Parameters up to this number need no allocation.
const FEW: usize = 4;

/// Parameters in the shape in which the library takes them.
struct BoundParams<'p> {
    few: [ffi::BoundParam; FEW],
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
        let mut few = [Self::NOTHING; FEW];
        let mut many = Vec::new();
        if params.len() <= FEW {
            few.iter_mut().zip(params).for_each(|(place, param)| *place = bind(param));
        } else {
            many.extend(params.iter().map(bind));
        }
        BoundParams { few, many, _params: std::marker::PhantomData }
    }

    fn as_ptr(&self) -> *const ffi::BoundParam {
        if self.many.is_empty() { self.few.as_ptr() } else { self.many.as_ptr() }
    }
}

/// Points to where the value lies.
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
