//! A selector: commands, keys and channels that go together.

use super::catalog::{Catalog, UnitSet};
use super::key_use::KeyUse;
use crate::glob;

/// A pattern of keys, and what may be done with them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyPattern {
    pub pattern: Vec<u8>,
    pub read: bool,
    pub write: bool,
}

/// What a user, or a part of a user's rules, allows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selector {
    /// `+@all` is the base of the commands, so that those to come are allowed as well.
    pub all: bool,
    /// The rules on commands since the base, as they are shown.
    pub rules: Vec<String>,
    /// What comes of them.
    pub units: UnitSet,
    /// Commands that are allowed with this second word only.
    pub first_words: Vec<(usize, String)>,
    pub all_keys: bool,
    pub keys: Vec<KeyPattern>,
    pub all_channels: bool,
    pub channels: Vec<Vec<u8>>,
}

impl Selector {
    /// Allows everything.
    pub fn open(catalog: &Catalog) -> Self {
        let mut open = Self {
            all_keys: true,
            all_channels: true,
            ..Self::default()
        };
        open.allow_all(catalog, true);
        open
    }

    /// Whether no command needs to be looked at.
    pub fn is_open(&self) -> bool {
        self.all && self.rules.is_empty() && self.all_keys && self.all_channels
    }

    /// Begins the commands anew, with all or none.
    pub fn allow_all(&mut self, catalog: &Catalog, on: bool) {
        self.all = on;
        self.rules.clear();
        self.first_words.clear();
        self.units = UnitSet::default();
        (0..catalog.units.len()).for_each(|unit| self.units.put(unit, on));
    }

    /// Allows or forbids a command with its subcommands, or one subcommand.
    pub fn allow(&mut self, catalog: &Catalog, unit: usize, on: bool) {
        self.units.put(unit, on);
        catalog
            .family(unit)
            .for_each(|unit| self.units.put(unit, on));
        self.first_words.retain(|(command, _)| *command != unit);
        // A command goes with any of its subcommands, which are looked at by themselves.
        let name = &catalog.units[unit].name;
        let of_it = |rule: &String| {
            let rule = &rule[1..];
            rule == name
                || rule
                    .strip_prefix(name.as_str())
                    .is_some_and(|rest| rest.starts_with('|'))
        };
        self.rules.retain(|rule| !of_it(rule));
        let plain = Self {
            rules: Vec::new(),
            ..self.clone()
        };
        if plain.implied(catalog, &self.rules, unit) != on {
            self.rules.push(format!("{}{name}", sign(on)));
        }
    }

    /// Whether the base and `rules` allow the unit.
    fn implied(&self, catalog: &Catalog, rules: &[String], unit: usize) -> bool {
        let mut allowed = self.all;
        for rule in rules {
            let (on, word) = (rule.starts_with('+'), &rule[1..]);
            let fits = match word.strip_prefix('@') {
                Some(name) => super::catalog::category(name.as_bytes())
                    .is_some_and(|bit| catalog.units[unit].categories & bit != 0),
                None => catalog.units[unit].name.split('|').next() == Some(word),
            };
            if fits {
                allowed = on;
            }
        }
        allowed
    }

    /// Allows or forbids a category.
    pub fn allow_category(&mut self, catalog: &Catalog, name: &str, bit: u32, on: bool) {
        let within = |unit: &usize| catalog.units[*unit].categories & bit != 0;
        for unit in (0..catalog.units.len()).filter(within) {
            self.units.put(unit, on);
        }
        self.first_words.retain(|(command, _)| !within(command));
        let rule = format!("@{name}");
        // What was said of a command that is wholly in the category does not count any more.
        let overruled = |had: &str| {
            let named = catalog.find(had.as_bytes());
            let command = had.split('|').next().unwrap_or(had);
            match named.or_else(|| catalog.find(command.as_bytes())) {
                Some(unit) => within(&unit) && catalog.family(unit).all(|unit| within(&unit)),
                None => had == rule,
            }
        };
        self.rules.retain(|had| !overruled(&had[1..]));
        self.rules.push(format!("{}{rule}", sign(on)));
    }

    /// Allows a command with one second word.
    pub fn allow_first_word(&mut self, catalog: &Catalog, command: usize, word: &str) {
        let rule = format!("+{}|{word}", catalog.units[command].name);
        if !self.rules.contains(&rule) {
            self.rules.push(rule);
        }
        self.first_words.push((command, word.to_owned()));
    }

    /// Whether the command of that unit may run at all.
    pub fn runs(&self, unit: usize, command: usize, second: &[u8]) -> bool {
        let by_word = |(with, word): &(usize, String)| {
            *with == command && word.as_bytes().eq_ignore_ascii_case(second)
        };
        self.units.has(unit) || self.first_words.iter().any(by_word)
    }

    /// Whether it may read any key.
    pub fn reads_all(&self) -> bool {
        let all = |key: &KeyPattern| key.read && key.pattern == b"*";
        self.all_keys || self.keys.iter().any(all)
    }

    pub fn reaches_key(&self, key: &[u8], used: KeyUse) -> bool {
        self.all_keys
            || self.keys.iter().any(|pattern| {
                (pattern.read || !used.read)
                    && (pattern.write || !used.write)
                    && glob::matches(&pattern.pattern, key, false)
            })
    }

    /// A pattern must be allowed word for word.
    pub fn reaches_channel(&self, channel: &[u8], is_pattern: bool) -> bool {
        self.all_channels
            || self.channels.iter().any(|pattern| match is_pattern {
                true => pattern == channel,
                false => glob::matches(pattern, channel, false),
            })
    }
}

fn sign(on: bool) -> char {
    if on { '+' } else { '-' }
}
