//! What kind of rack is wanted.

use crate::Failure;
use rackmem_hosts::Place;
use rackmem_hosts::rack::{Switch, Work};

/// The name of a rack unless told.
pub const NAME: &str = "rack";

/// Options of `cargo xtask rack`.
#[derive(Debug, PartialEq)]
pub struct Options {
    pub hosts: usize,
    pub switch: Switch,
    pub work: Work,
    pub mode: Option<String>,
    pub fixed: bool,
    pub set: Vec<String>,
    pub loss: Option<f64>,
    pub at: Place,
    pub name: String,
    pub keep: bool,
    pub debug: bool,
    pub command: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            hosts: 4,
            switch: Switch::User,
            work: Work::Store,
            mode: None,
            fixed: false,
            set: Vec::new(),
            loss: None,
            at: Place::Host(0),
            name: NAME.into(),
            keep: false,
            debug: false,
            command: Vec::new(),
        }
    }
}

impl Options {
    pub fn parse(words: &[String]) -> Result<Options, Failure> {
        let mut options = Options::default();
        let mut xdp_mode = "auto".to_owned();
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            let mut value = || {
                let value = rest.next().map(String::as_str);
                value.ok_or_else(|| format!("{word} needs a value; see `cargo xtask rack --help`"))
            };
            match word.as_str() {
                "--hosts" => options.hosts = number(word, value()?)?,
                "--switch" => {
                    options.switch = match value()? {
                        "user" => Switch::User,
                        "xdp" => Switch::Xdp(String::new()),
                        "none" => Switch::None,
                        other => return Err(choose(word, other, "user, xdp or none")),
                    }
                }
                "--xdp-mode" => {
                    xdp_mode = match value()? {
                        mode @ ("native" | "skb" | "auto") => mode.into(),
                        other => return Err(choose(word, other, "native, skb or auto")),
                    }
                }
                "--mode" => {
                    options.mode = match value()? {
                        mode @ ("switch" | "home-only") => Some(mode.into()),
                        other => return Err(choose(word, other, "switch or home-only")),
                    }
                }
                "--run" => {
                    options.work = match value()? {
                        "store" => Work::Store,
                        "node" => Work::Node,
                        "nothing" => Work::Nothing,
                        other => return Err(choose(word, other, "store, node or nothing")),
                    }
                }
                "--set" => options.set.push(value()?.into()),
                "--loss" => options.loss = Some(number(word, value()?)?),
                "--in" => options.at = super::place(value()?)?,
                "--name" => options.name = value()?.into(),
                "--fixed" => options.fixed = true,
                "--keep" => options.keep = true,
                "--debug" => options.debug = true,
                "--" => {
                    options.command = rest.cloned().collect();
                    break;
                }
                other => {
                    return Err(format!(
                        "`{other}` is not known; see `cargo xtask rack --help`"
                    ));
                }
            }
        }
        options.agree(xdp_mode)
    }

    /// The mode and the switch go together; one follows from the other.
    fn agree(mut self, xdp_mode: String) -> Result<Options, Failure> {
        if let Switch::Xdp(mode) = &mut self.switch {
            *mode = xdp_mode;
        }
        let without = self.mode.as_deref().is_some_and(|mode| mode != "switch");
        if without && self.switch == Switch::User {
            self.switch = Switch::None;
        }
        if without != (self.switch == Switch::None) && self.mode.is_some() {
            return Err("a switch goes with --mode switch, and only with it".into());
        }
        if self.keep && !self.command.is_empty() {
            return Err(
                "--keep leaves the rack there: run the command with `cargo xtask rack in 0 ...`"
                    .into(),
            );
        }
        Ok(self)
    }

    /// Further lines of the rack's file.
    pub fn settings(&self) -> String {
        let mut text = String::new();
        if let Some(mode) = &self.mode {
            text.push_str(&format!("mode = \"{mode}\"\n"));
        }
        for line in &self.set {
            text.push_str(&format!("{line}\n"));
        }
        if let Some(loss) = self.loss {
            text.push_str(&format!("[faults]\nloss = {loss:?}\n"));
        }
        text
    }
}

fn number<T: std::str::FromStr>(option: &str, value: &str) -> Result<T, Failure> {
    let wrong = |_| format!("{option} needs a number, not `{value}`");
    value.parse().map_err(wrong)
}

fn choose(option: &str, value: &str, among: &str) -> Failure {
    format!("{option} is {among}, not `{value}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, Failure> {
        let words: Vec<String> = line.split_whitespace().map(String::from).collect();
        Options::parse(&words)
    }

    #[test]
    fn what_is_left_out_is_as_usual() {
        assert_eq!(parse("").unwrap(), Options::default());
        let options =
            parse("--hosts 2 --switch xdp --xdp-mode skb --in switch -- ls --hosts").unwrap();
        assert_eq!((options.hosts, options.at), (2, Place::Switch));
        assert_eq!(options.switch, Switch::Xdp("skb".into()));
        assert_eq!(options.command, ["ls", "--hosts"]);
    }

    #[test]
    fn the_mode_says_whether_there_is_a_switch() {
        assert_eq!(parse("--mode home-only").unwrap().switch, Switch::None);
        assert_eq!(parse("--switch none").unwrap().settings(), "");
        assert!(parse("--mode switch --switch none").is_err());
        assert!(parse("--mode home-only --switch xdp").is_err());
        let settings = parse("--mode home-only --set lease_ms=500 --loss 0.1")
            .unwrap()
            .settings();
        assert_eq!(
            settings,
            "mode = \"home-only\"\nlease_ms=500\n[faults]\nloss = 0.1\n"
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, named) in [
            ("--hosts", "--hosts"),
            ("--hosts many", "many"),
            ("--switch fast", "user, xdp or none"),
            ("--run fast", "store, node or nothing"),
            ("--fast", "--fast"),
            ("--keep -- ls", "--keep"),
        ] {
            let failure = parse(line).unwrap_err();
            assert!(failure.contains(named), "{line}: {failure}");
        }
    }
}
