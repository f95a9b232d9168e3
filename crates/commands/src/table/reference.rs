//! The page that lists the commands, made from their table.

use super::{Access, COMMANDS};

/// The reference page of all commands, as Markdown.
pub fn page() -> String {
    let mut page = String::from(
        "# Commands\n\nWhat Selkie answers, generated from the table in `crates/commands/src/table.rs`. Commands not listed are \
         answered with error 59, `CommandNotFound`.\n\n| Command | Touches | Database | What it does |\n|---|---|---|---|\n",
    );
    for spec in COMMANDS {
        let aliases: String = spec.aliases.iter().map(|alias| format!(", `{alias}`")).collect();
        let touches = match spec.access {
            Access::Nothing => "nothing",
            Access::Read => "reads",
            Access::Write => "writes",
            Access::Admin => "catalog or server",
        };
        let database = if spec.admin_database_only { "`admin`" } else { "any" };
        page += &format!("| `{}`{aliases} | {touches} | {database} | {} |\n", spec.name, spec.help);
    }
    page
}
