//! What a server says of its cache, in the section `cache` of serverStatus.

use crate::client::{Address, Connection};
use crate::message::{Message, check_ok};
use anyhow::Result;
use document::{Doc, Value, doc};

/// All numbers of the section, by their paths; none where a server has no such section.
#[derive(Clone, Debug, Default)]
pub struct CacheFigures(Vec<(String, i64)>);

impl CacheFigures {
    /// Summed over the servers.
    pub fn of(addresses: &[Address]) -> Result<CacheFigures> {
        let mut figures = CacheFigures::default();
        for address in addresses {
            let mut connection = Connection::open(address)?;
            let status = Message::command_on("admin", doc! { "serverStatus": 1i32 });
            let reply = check_ok(connection.round_trip(&status)?)?;
            if let Some(Value::Document(section)) = reply.get("cache") {
                figures.collect("", section);
            }
        }
        Ok(figures)
    }

    pub fn all(&self) -> &[(String, i64)] {
        &self.0
    }

    /// Zero for what is not told.
    pub fn get(&self, name: &str) -> i64 {
        self.0.iter().find(|(known, _)| known == name).map_or(0, |(_, number)| *number)
    }

    fn collect(&mut self, prefix: &str, section: Doc<'_>) {
        for (name, value) in section.iter() {
            let name = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") };
            if let Value::Document(inner) = value {
                self.collect(&name, inner);
            } else if let Some(number) = value.to_i64() {
                match self.0.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, sum)) => *sum += number,
                    None => self.0.push((name, number)),
                }
            }
        }
    }
}
