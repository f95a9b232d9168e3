//! The error for a command that its user may not run.

use document::{Doc, DocBuf};
use error::{Code, Error};
use std::fmt::{self, Write};

/// The most of a command that is printed. MongoDB prints all of it.
const COMMAND_BYTES_MAX: usize = 4 << 20;

/// Returns the error for a command that the user's privileges do not allow. `body`: the command
/// without its secrets.
#[cold]
pub fn not_authorized(database: &str, body: Doc<'_>) -> Error {
    let mut text = Limited(format!("not authorized on {database} to execute command "));
    let counted = with_counts(body);
    let body = counted.as_ref().map_or(body, DocBuf::as_doc);
    // Fails when the text is long enough.
    let _ = write!(text, "{}", values::text::document(body));
    Error::new(Code::UNAUTHORIZED, text.0)
}

/// Returns the error for a command that needs a login.
#[cold]
pub fn needs_login(command: &str) -> Error {
    Error::new(Code::UNAUTHORIZED, format!("command {command} requires authentication"))
}

/// Returns the command with the number of its statements or documents in place of several; `None`
/// if it has none of these.
fn with_counts(body: Doc<'_>) -> Option<DocBuf> {
    let statements = statements_field(body.first()?.key())?;
    Some(DocBuf::build(|writer| {
        body.elements().for_each(|field| {
            let several = field.value().as_array().map(|array| array.elements().count()).filter(|count| *count > 1);
            match several.filter(|_| field.key() == statements) {
                Some(count) => writer.append(field.key(), count as i32),
                None => writer.append_element(field),
            }
        });
    }))
}

/// Returns the field with the statements or documents of a command that writes.
fn statements_field(command: &str) -> Option<&'static str> {
    match command {
        "insert" => Some("documents"),
        "update" => Some("updates"),
        "delete" => Some("deletes"),
        _ => None,
    }
}

/// Text that ends at a limit.
struct Limited(String);

impl Write for Limited {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        if self.0.len() + more.len() > COMMAND_BYTES_MAX {
            self.0.push_str("...");
            return Err(fmt::Error);
        }
        self.0.push_str(more);
        Ok(())
    }
}
