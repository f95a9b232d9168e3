//! `getLog`: recent lines of the log.

use crate::arguments;
use crate::call::Call;
use document::DocWriter;
use error::{Code, Error, Result};
use server::log_lines;

pub fn get_log(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let name = arguments::string("getLog", call.first())?;
    if name == "*" {
        let mut names = reply.array("names");
        ["global", "startupWarnings"].into_iter().for_each(|name| names.push(name));
        return Ok(());
    }
    let Some((total, lines)) = log_lines::recent().read(name) else {
        return Err(Error::new(Code::OPERATION_FAILED, format!("No log named '{name}'")));
    };
    reply.append("totalLinesWritten", total as i32);
    let mut log = reply.array("log");
    lines.iter().for_each(|line| log.push(line));
    Ok(())
}
