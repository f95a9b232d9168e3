//! A section of the report: one published experiment beside its results here.

use harness::report::markdown;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

pub struct Section {
    pub title: &'static str,
    /// The published experiment, and the differences to the one here.
    pub about: &'static str,
    pub tables: Vec<Table>,
    pub notes: Vec<String>,
}

pub struct Table {
    pub lines: Vec<Vec<String>>,
    /// The command that measured the table: a program and its arguments.
    pub command: Vec<String>,
    /// Images and pages beside the report.
    pub plots: Vec<PathBuf>,
}

impl Section {
    pub fn markdown(&self) -> String {
        let mut text = format!("## {}\n\n{}\n\n", self.title, self.about);
        for table in &self.tables {
            text += &format!("{}\n`{}`\n\n", markdown(&table.lines), table.command.join(" "));
            for plot in &table.plots {
                text += &link(plot);
            }
        }
        for note in &self.notes {
            text += &format!("{note}\n\n");
        }
        text
    }
}

/// Returns Markdown that shows an image, or links a page.
fn link(plot: &Path) -> String {
    let part = |part: Option<&OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    let (name, title) = (part(plot.file_name()), part(plot.file_stem()).replace('-', " "));
    match plot.extension().is_some_and(|extension| extension == "png") {
        true => format!("![{title}]({name})\n\n"),
        false => format!("[All results of {title}]({name})\n\n"),
    }
}

/// Returns the cells of a line.
pub fn line<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_shows_its_command_under_its_table() {
        let table = Table {
            lines: vec![line(["a", "b"]), line(["1", "2"])],
            command: ["bench", "cars", "--modes"].map(str::to_owned).to_vec(),
            plots: vec!["out/a-page.html".into(), "out/some-plot.png".into()],
        };
        let section =
            Section { title: "Cars", about: "About them.", tables: vec![table], notes: vec!["A note.".into()] };
        let expected = "## Cars\n\nAbout them.\n\n| a | b |\n| - | - |\n| 1 | 2 |\n\n`bench cars --modes`\n\n\
                        [All results of a page](a-page.html)\n\n![some plot](some-plot.png)\n\nA note.\n\n";
        assert_eq!(section.markdown(), expected);
    }
}
