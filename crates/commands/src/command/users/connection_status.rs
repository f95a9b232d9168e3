//! `connectionStatus`, `whatsmyuri`, `logout`: the connection and its user.

use crate::call::Call;
use auth::privilege;
use document::DocWriter;
use error::Result;

/// Reports the user that is logged in, and its roles.
pub fn connection_status(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let show_privileges = call.fields().any(|field| field.key() == "showPrivileges" && field.value().is_truthy());
    let login = call.session.login();
    let mut info = reply.document("authInfo");
    let mut users = info.array("authenticatedUsers");
    if let Some(login) = &login {
        login.name.write(&mut users.document());
    }
    drop(users);
    let mut roles = info.array("authenticatedUserRoles");
    login.iter().flat_map(|login| login.roles.iter()).for_each(|role| role.write(&mut roles.document()));
    drop(roles);
    if show_privileges {
        let mut privileges = info.array("authenticatedUserPrivileges");
        login.iter().for_each(|login| privilege::write_all(login.privileges.list(), &mut privileges));
    }
    Ok(())
}

pub fn whats_my_uri(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let address = call.session.client.map_or_else(|| "anonymous unix socket:27017".to_owned(), |a| a.to_string());
    reply.append("you", &address);
    Ok(())
}

/// Ends the login, if its user is of this database.
pub fn logout(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    if call.session.login().is_some_and(|login| *login.name.db == *call.database()) {
        call.session.set_login(None);
    }
    Ok(())
}

/// Makes each session read its user again before its next command.
pub fn invalidate_user_cache(call: &mut Call<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    call.worker.server.access_control.directory.announce_change();
    Ok(())
}
