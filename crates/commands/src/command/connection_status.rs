//! `connectionStatus`, `whatsmyuri`, `logout`: the connection and who speaks on it.

use crate::arguments::{boolean_or_number, is_absent, unknown_field};
use crate::dispatch::Call;
use document::DocWriter;
use error::Result;

/// There are no users yet, so nobody is logged in.
pub fn connection_status(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let mut show_privileges = false;
    for field in call.fields() {
        match field.key() {
            "showPrivileges" if is_absent(field) => {}
            "showPrivileges" => show_privileges = boolean_or_number("connectionStatus", field)?,
            other => return Err(unknown_field("connectionStatus", other)),
        }
    }
    let mut info = reply.document("authInfo");
    drop(info.array("authenticatedUsers"));
    drop(info.array("authenticatedUserRoles"));
    if show_privileges {
        drop(info.array("authenticatedUserPrivileges"));
    }
    Ok(())
}

pub fn whats_my_uri(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let address = call.session.client.map_or_else(|| "anonymous unix socket:27017".to_owned(), |a| a.to_string());
    reply.append("you", &address);
    Ok(())
}

/// Nobody is logged in, and logging nobody out succeeds, as it does with MongoDB.
pub fn logout(_call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    Ok(())
}
