//! Classifies statements: reads them from the standard input, separated by zero bytes, and writes a
//! line about each. Its fields are separated by tabs: kind, changes, reason for the primary,
//! canonical form, text without superfluous white space. With `explain`, it writes sentences.

use sql_classify::canonical::{canonical, collapsed};
use sql_classify::{ClassCache, Lexis, ParseContext, Writes};
use std::io::{Read, Write};

/// The version of the server whose version comments are read.
const SERVER_VERSION: u32 = 101_119;

fn main() -> std::io::Result<()> {
    let explains = std::env::args().nth(1).is_some_and(|word| word == "explain");
    let mut input = Vec::new();
    std::io::stdin().read_to_end(&mut input)?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut cache = ClassCache::default();
    let lexis = Lexis { server_version: SERVER_VERSION, ..Lexis::default() };
    for sql in input.split(|byte| *byte == 0).filter(|sql| !sql.is_empty()) {
        let class = cache.class(sql, lexis, ParseContext::default());
        if explains {
            writeln!(out, "{}\n{}", String::from_utf8_lossy(sql), class.explain())?;
            continue;
        }
        let statement = class.statement();
        let effects = &statement.effects;
        let writes = match &effects.writes {
            Writes::Nothing if effects.calls.are_more => "calls unknown".to_owned(),
            Writes::Nothing if effects.calls.is_empty() => "nothing".to_owned(),
            Writes::Nothing => "calls".to_owned(),
            Writes::Tables(tables) => format!("{} tables", tables.len()),
            Writes::AnyRows => "any rows".to_owned(),
            Writes::Everything => "everything".to_owned(),
        };
        let kind = format!("{:?}", statement.kind);
        let kind = kind.split([' ', '{']).next().unwrap_or_default();
        let text = String::from_utf8_lossy(sql);
        let line = |text: Result<String, _>| {
            text.unwrap_or_else(|unclear: sql_classify::scanner::Unclear| format!("! {unclear}"))
        };
        let form = line(canonical(&text, lexis).map(|form| form.text));
        let collapsed = line(collapsed(&text, lexis));
        let fields = [kind, &writes, &format!("{:?}", class.facts().primary), &form, &collapsed];
        let fields: Vec<String> =
            fields.iter().map(|field| field.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n")).collect();
        writeln!(out, "{}", fields.join("\t"))?;
    }
    out.flush()
}
