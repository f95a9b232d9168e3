//! `connectionStatus`, `whatsmyuri`, `logout`: the connection and its user.

use crate::call::Call;
use document::DocWriter;
use error::Result;

/// Reports that no user is logged in, because there are none.
pub fn connection_status(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let show_privileges = call.fields().any(|field| field.key() == "showPrivileges" && field.value().is_truthy());
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

/// Succeeds without effect, as in MongoDB without a login.
pub fn logout(_call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    Ok(())
}

/// Makes each session read its user again before its next command.
pub fn invalidate_user_cache(_call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    Ok(())
}
