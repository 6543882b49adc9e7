//! The store in which the members of a rack are agreed on.

use super::{Check, Finding, State};
use rackmem::Config;
use std::time::{Duration, Instant};

/// How long the store may take to answer.
const WITHIN: Duration = Duration::from_secs(2);

/// Looked at when there is a file that names the store.
pub const CHECK: Check = Check {
    name: "membership store",
    probe: || Finding::new(State::Missing, "no file of a rack was given"),
    enable: "start the store that `membership` in the file names, or correct the line; docs/membership.md says how",
    without: "no process of this rack can join or keep its place",
};

/// Looks at the store of one rack.
pub fn look(config: &Config) -> Finding {
    let settings = &config.membership;
    let store = match settings.source.open(&settings.name) {
        Ok(Some(store)) => store,
        Ok(None) => {
            let what = "none: members are fixed, and one that dies is waited for";
            return Finding::new(State::Limited, what);
        }
        Err(error) => return Finding::new(State::Missing, error.to_string()),
    };
    let began = Instant::now();
    match store.load(WITHIN) {
        Err(error) => Finding::new(State::Missing, error.to_string()),
        Ok(snapshot) => {
            let took = began.elapsed();
            let nodes = snapshot
                .roster
                .map_or(0, |roster| roster.view.live.iter().count());
            // A member looks and beats five times a lease, and its lease is over when both take too
            // long.
            let soon = took < settings.lease / 10;
            let ms = took.as_secs_f64() * 1000.0;
            let what = format!(
                "answers in {ms:.1} ms, with leases of {} ms; {nodes} nodes are members",
                settings.lease.as_millis()
            );
            Finding::found_if(soon, State::Limited, what)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(membership: &str) -> Finding {
        let file = format!("nodes = ['127.0.0.1:1']\n{membership}");
        look(&Config::parse(&file).unwrap())
    }

    #[test]
    fn a_store_is_there_or_not_or_not_wanted() {
        let folder =
            std::env::temp_dir().join(format!("rackmem-doctor-members-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let there = found(&format!(
            "membership = 'dir:{}'\nlease_ms = 60000",
            folder.display()
        ));
        assert_eq!(there.state, State::Found, "{}", there.detail);
        assert!(there.detail.contains("0 nodes are members"));
        let _ = std::fs::remove_dir_all(folder);
        assert_eq!(found("").state, State::Limited);
        assert_eq!(
            found("membership = 'etcd:http://127.0.0.1:9'").state,
            State::Missing
        );
    }
}
