//! The reference page of the commands, made from their table.

use super::COMMANDS;
use super::spec::{Access, Spec};

/// Returns the reference page of all commands, as Markdown.
pub fn page() -> String {
    let mut page = String::from(
        "# Commands\n\nThe commands that Selkie answers, generated from the tables in `crates/commands/src/command/`.\n\
         Other commands fail with error 59, `CommandNotFound`. *Privilege* lists the actions that some form\n\
         of the command requires, with access control.\n\n| Command | Access | Database | Privilege | Description |\n\
         |---|---|---|---|---|\n",
    );
    COMMANDS.specs().iter().for_each(|spec| page += &row(spec));
    page
}

fn row(spec: &Spec) -> String {
    let aliases: String = spec.aliases.iter().map(|alias| format!(", `{alias}`")).collect();
    let access = match spec.access {
        Access::Nothing => "none",
        Access::Read => "read",
        Access::Write => "write",
        Access::Admin => "catalog or server",
    };
    let database = if spec.admin_database_only { "`admin`" } else { "any" };
    let actions: Vec<String> =
        spec.authorization.actions().iter().map(|action| format!("`{}`", action.name())).collect();
    format!("| `{}`{aliases} | {access} | {database} | {} | {} |\n", spec.name, actions.join(", "), spec.help)
}
