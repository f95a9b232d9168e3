//! Generates the reference page and the example file from the table of parameters. A test checks
//! that both are up to date; `SELKIE_UPDATE_DOCS=1 cargo test -p selkie reference` writes them.

use super::parameter::{self, Description, OBJECT_SECTIONS, Parameter, SECTIONS};
use std::fmt::Write;
use std::path::PathBuf;

fn is_comment(default: &str) -> bool {
    default.starts_with('#')
}

/// The longest line of prose.
const COLUMNS: usize = 100;

/// Breaks a paragraph into lines that begin with `start`.
fn wrapped(text: &str, start: &str) -> String {
    let (mut lines, mut line) = (String::new(), start.to_owned());
    for word in text.split(' ') {
        if line.len() > start.len() && line.chars().count() + word.chars().count() >= COLUMNS {
            lines.push_str(line.trim_end());
            lines.push('\n');
            line = start.to_owned();
        }
        line.push_str(word);
        line.push(' ');
    }
    lines + line.trim_end()
}

/// Returns the sections: heading of the page, line of the example file, description, parameters. An
/// object of the example file is commented out: without its keys it would be incomplete.
fn sections() -> impl Iterator<Item = (String, String, &'static str, Vec<Description>)> {
    let ordinary = SECTIONS.iter().map(|&(section, about)| {
        let here = parameter::all().filter(|parameter| parameter.section == section);
        let line = if section.is_empty() { String::new() } else { format!("[{section}]") };
        (section.to_owned(), line, about, here.map(Parameter::description).collect())
    });
    let objects = OBJECT_SECTIONS.iter().map(|&(section, about)| {
        let line = format!("#[{section}.{}]", example_name(section));
        (format!("{section}.NAME"), line, about, parameter::described_in(section))
    });
    ordinary.chain(objects)
}

/// Returns the name of an object in the example file, to which others refer.
fn example_name(section: &str) -> &'static str {
    match section {
        "server" => "db1",
        "monitor" => "main",
        "filter" => "guard",
        "service" => "app",
        _ => "sql",
    }
}

fn reference_page() -> String {
    let mut page = String::from(
        "# Configuration\n\n\
         <!-- Generated from crates/selkie/src/config/parameter/; change it there. -->\n\n\
         `selkie serve` needs no configuration. Settings are flags, or keys of one file given with\n\
         `--config FILE`; a flag takes precedence. `selkie check --config FILE` checks a file without\n\
         starting anything. [selkie.toml](selkie.toml) has every parameter with its default.\n\n\
         The file is strict TOML: an unknown key or an invalid value is an error with its line.\n",
    );
    for (heading, _, about, parameters) in sections() {
        let heading = if heading.is_empty() { "At the top of the file".to_owned() } else { format!("[{heading}]") };
        let _ = write!(page, "\n## {heading}\n\n{}\n", wrapped(about, ""));
        for parameter in parameters {
            let default = match parameter.default.strip_prefix("# ") {
                Some(words) => words.to_owned(),
                None => format!("`{}`", parameter.default),
            };
            let flag = parameter.flag.map_or_else(String::new, |flag| format!(" · flag: `{flag}`"));
            let example = format!("`{} = {}`", parameter.name, parameter.example);
            let facts = format!("{} · default: {default}{flag} · example: {example}", parameter.kind);
            let (about, facts) = (wrapped(parameter.about, ""), wrapped(&facts, ""));
            let _ = write!(page, "\n### {}\n\n{about}\n\n{facts}\n", parameter.name);
        }
    }
    page
}

fn example_file() -> String {
    let mut file = String::from("# Selkie's configuration, with every default. See configuration.md.\n");
    for (_, heading, about, parameters) in sections() {
        let _ = write!(file, "\n{}\n", wrapped(about, "# "));
        if !heading.is_empty() {
            let _ = writeln!(file, "{heading}");
        }
        for parameter in parameters {
            let value = if is_comment(parameter.default) { parameter.example } else { parameter.default };
            let about = wrapped(parameter.about, "# ");
            let _ = write!(file, "\n{about}\n#{} = {value}\n", parameter.name);
        }
    }
    file
}

fn check_fresh(name: &str, text: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(name);
    if std::env::var_os("SELKIE_UPDATE_DOCS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, text, "{} is stale: run SELKIE_UPDATE_DOCS=1 cargo test -p selkie reference", path.display());
}

#[test]
fn reference_page_is_fresh() {
    check_fresh("configuration.md", &reference_page());
}

#[test]
fn example_file_is_fresh_and_right() {
    let text = example_file();
    check_fresh("selkie.toml", &text);
    // Without comment signs, the file must parse. The example URL excludes the data directory.
    let bare: String = text
        .lines()
        .filter(|line| !line.starts_with("# ") && !line.starts_with("#data"))
        .fold(String::new(), |bare, line| bare + line.trim_start_matches('#') + "\n");
    super::file::read("selkie.toml".as_ref(), &bare).unwrap();
}
