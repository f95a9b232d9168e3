//! `listCommands`, from the table of facts.

use crate::call::Call;
use crate::table::spec::{Access, StableApi};
use document::DocWriter;
use error::Result;

pub fn list_commands(call: &mut Call<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let mut listed: Vec<_> = call.table.specs().iter().filter(|spec| spec.existence.includes(call.worker)).collect();
    listed.sort_unstable_by_key(|spec| spec.name);
    let mut commands = reply.document("commands");
    for spec in listed {
        let mut entry = commands.document(spec.name);
        entry.append("help", spec.help);
        entry.append("requiresAuth", spec.needs_authentication);
        entry.append("secondaryOk", matches!(spec.access, Access::Nothing | Access::Read));
        entry.append("adminOnly", spec.admin_database_only);
        let mut versions = entry.array("apiVersions");
        if matches!(spec.stable_api, StableApi::IncludedWithout(_)) {
            versions.push("1");
        }
        drop(versions);
        drop(entry.array("deprecatedApiVersions"));
    }
    Ok(())
}
