//! Statistics of a server's cache, from the section `cache` of serverStatus.

use crate::address::Address;
use crate::connection::Connection;
use crate::message::{Message, check_ok};
use anyhow::Result;
use document::{Doc, Value, doc};

/// All numbers of the section, by their dotted paths; empty if a server has no such section.
#[derive(Clone, Debug, Default)]
pub struct CacheStatistics(Vec<(String, i64)>);

impl CacheStatistics {
    /// Reads the statistics of each server and adds them up.
    pub fn of(addresses: &[Address]) -> Result<CacheStatistics> {
        let mut statistics = CacheStatistics::default();
        for address in addresses {
            let mut connection = Connection::open(address)?;
            let status = Message::command_on("admin", doc! { "serverStatus": 1i32 });
            let reply = check_ok(connection.round_trip(&status)?)?;
            if let Some(Value::Document(section)) = reply.get("cache") {
                statistics.collect("", section);
            }
        }
        Ok(statistics)
    }

    pub fn all(&self) -> &[(String, i64)] {
        &self.0
    }

    /// Returns the number with this path, or zero if there is none.
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
