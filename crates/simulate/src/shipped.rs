//! The scenarios that are included in the program, by name.

/// An included scenario. Some are another one with a changed line.
pub struct Shipped {
    pub name: &'static str,
    text: &'static str,
    change: Option<(&'static str, &'static str)>,
}

macro_rules! shipped {
    ($name:literal) => {
        Shipped { name: $name, text: include_str!(concat!("scenarios/", $name, ".toml")), change: None }
    };
    ($name:literal, $of:literal, $from:literal => $to:literal) => {
        Shipped { name: $name, text: include_str!(concat!("scenarios/", $of, ".toml")), change: Some(($from, $to)) }
    };
}

pub const SHIPPED: [Shipped; 8] = [
    shipped!("slice-cache"),
    shipped!("slice-cache-preallocated", "slice-cache", "preallocated = 0" => "preallocated = 10"),
    shipped!("time-series"),
    shipped!("queue"),
    shipped!("account-transfers"),
    shipped!("account-transfers-two-phase"),
    shipped!("metadata"),
    shipped!("theatre"),
];

impl Shipped {
    pub fn text(&self) -> String {
        match self.change {
            Some((from, to)) => self.text.replacen(from, to, 1),
            None => self.text.to_owned(),
        }
    }
}

pub fn find(name: &str) -> Option<&'static Shipped> {
    SHIPPED.iter().find(|shipped| shipped.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    #[test]
    fn each_is_valid_and_has_a_description() {
        for shipped in &SHIPPED {
            let scenario =
                Scenario::read(&shipped.text(), &[]).unwrap_or_else(|error| panic!("{}:{error}", shipped.name));
            assert!(!scenario.about.is_empty() && !scenario.checks.is_empty(), "{}", shipped.name);
            assert!(shipped.change.is_none() || shipped.text() != shipped.text, "{}: nothing is changed", shipped.name);
        }
    }
}
