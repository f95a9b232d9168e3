//! One file per command or family: read the fields, act, shape the answer.

pub mod build_info;
pub mod connection_status;
pub mod get_cmd_line_opts;
pub mod get_log;
pub mod hello;
pub mod host_info;
pub mod list_commands;
pub mod parameters;
pub mod ping;
