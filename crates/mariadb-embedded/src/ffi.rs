//! The library's functions, as declared in its `mysql.h`, and those of `structs.c`.

use std::ffi::{c_char, c_int, c_uint, c_ulong, c_ulonglong, c_void};

/// Types of which nothing is known here.
#[repr(C)]
pub struct Mysql(c_void);
#[repr(C)]
pub struct MysqlStmt(c_void);
#[repr(C)]
pub struct MysqlRes(c_void);
#[repr(C)]
pub struct MysqlRows(c_void);

/// `embedded_param` of structs.c.
#[repr(C)]
pub struct BoundParam {
    pub value: *const c_void,
    pub length: c_ulong,
    pub column_type: c_uint,
    pub is_unsigned: c_uint,
}

// SAFETY: as the header declares them.
unsafe extern "C" {
    pub fn embedded_start(count: c_int, arguments: *mut *mut c_char) -> c_int;
    pub fn mysql_server_end();
    pub fn mysql_thread_init() -> c_char;
    pub fn mysql_thread_end();
    pub fn mysql_get_client_info() -> *const c_char;

    pub fn embedded_connect(code: *mut c_uint, message: *mut c_char, room: c_ulong) -> *mut Mysql;
    pub fn mysql_close(connection: *mut Mysql);
    pub fn mysql_thread_id(connection: *mut Mysql) -> c_ulong;
    pub fn mysql_errno(connection: *mut Mysql) -> c_uint;
    pub fn mysql_error(connection: *mut Mysql) -> *const c_char;
    pub fn mysql_affected_rows(connection: *mut Mysql) -> c_ulonglong;
    pub fn mysql_insert_id(connection: *mut Mysql) -> c_ulonglong;
    pub fn mysql_warning_count(connection: *mut Mysql) -> c_uint;
    pub fn embedded_status(connection: *const Mysql) -> c_uint;

    pub fn mysql_real_query(connection: *mut Mysql, sql: *const c_char, length: c_ulong) -> c_int;
    pub fn mysql_field_count(connection: *mut Mysql) -> c_uint;
    pub fn mysql_store_result(connection: *mut Mysql) -> *mut MysqlRes;
    pub fn mysql_fetch_row(result: *mut MysqlRes) -> *mut *mut c_char;
    pub fn mysql_fetch_lengths(result: *mut MysqlRes) -> *mut c_ulong;
    pub fn embedded_text_column_type(result: *mut MysqlRes, column: c_uint) -> u8;
    pub fn mysql_free_result(result: *mut MysqlRes);

    pub fn mysql_stmt_init(connection: *mut Mysql) -> *mut MysqlStmt;
    pub fn mysql_stmt_prepare(statement: *mut MysqlStmt, sql: *const c_char, length: c_ulong) -> c_int;
    pub fn mysql_stmt_param_count(statement: *mut MysqlStmt) -> c_ulong;
    pub fn mysql_stmt_field_count(statement: *mut MysqlStmt) -> c_uint;
    pub fn embedded_execute(statement: *mut MysqlStmt, params: *const BoundParam, count: c_uint) -> c_int;
    pub fn embedded_first_row(statement: *const MysqlStmt) -> *const MysqlRows;
    pub fn embedded_next_row(row: *const MysqlRows) -> *const MysqlRows;
    pub fn embedded_row(row: *const MysqlRows, length: *mut c_ulong) -> *const u8;
    pub fn embedded_column_type(statement: *const MysqlStmt, column: c_uint) -> u8;
    pub fn mysql_stmt_affected_rows(statement: *mut MysqlStmt) -> c_ulonglong;
    pub fn mysql_stmt_insert_id(statement: *mut MysqlStmt) -> c_ulonglong;
    pub fn mysql_stmt_errno(statement: *mut MysqlStmt) -> c_uint;
    pub fn mysql_stmt_error(statement: *mut MysqlStmt) -> *const c_char;
    pub fn mysql_stmt_free_result(statement: *mut MysqlStmt) -> c_char;
    pub fn mysql_stmt_close(statement: *mut MysqlStmt) -> c_char;
}
