//! `rackmem members`, beside members that the test keeps itself.

use crate::process::{TempFile, run, stderr, stdout};
use rackmem::Config;
use rackmem::membership::{Events, Role, View};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

struct Quiet;

impl Events for Quiet {
    fn view(&self, _: &View) {}
    fn lease(&self, _: bool) {}
    fn fenced(&self) {}
}

fn file(membership: &str) -> TempFile {
    let nodes = "nodes = ['127.0.0.1:1', '127.0.0.1:2']\nswitch = '127.0.0.1:3'";
    TempFile::new(&format!("{nodes}\n{membership}\n"))
}

fn members(file: &TempFile, more: &[&str]) -> Value {
    let output = run(&[&["members", "--json", "--rack", file.path()], more].concat());
    serde_json::from_str(&stdout(&output))
        .unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)))
}

#[test]
fn the_members_of_a_rack_are_shown_and_one_is_removed() {
    let folder = std::env::temp_dir().join(format!("rackmem-members-{}", std::process::id()));
    let file = file(&format!(
        "membership = 'dir:{}'\nname = 'a'",
        folder.display()
    ));
    assert_eq!(members(&file, &[])["version"], 0);
    let config = Config::parse(&file.text()).unwrap();
    let join = |role| {
        let patience = Duration::from_secs(60);
        config
            .membership
            .join(role, patience, Arc::new(Quiet))
            .unwrap()
    };
    let _keepers = [Role::Node(0), Role::Switch, Role::Node(1)].map(join);
    let shown = members(&file, &[]);
    assert_eq!(
        (&shown["name"], &shown["epoch"], &shown["shadow"]),
        (&json!("a"), &json!(2), &json!(0))
    );
    let names: Vec<&Value> = shown["members"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["member"])
        .collect();
    assert_eq!(names, ["node 0", "node 1", "switch"]);
    assert!(shown["members"][1]["heartbeat_ms_ago"].is_u64(), "{shown}");

    let text = stdout(&run(&["members", "--rack", file.path()]));
    assert!(
        text.contains("rack a") && text.contains("node 1") && text.contains("ms ago"),
        "{text}"
    );

    let after = members(&file, &["remove", "1"]);
    assert_eq!(after["epoch"], 3);
    let again = run(&["members", "--rack", file.path(), "remove", "1"]);
    assert!(
        stderr(&again).contains("node 1 is not in the rack"),
        "{}",
        stderr(&again)
    );
    let _ = std::fs::remove_dir_all(folder);
}

#[test]
fn fixed_members_are_shown_and_cannot_be_removed() {
    let file = file("");
    assert_eq!(members(&file, &[])["members"].as_array().unwrap().len(), 3);
    let removed = run(&["members", "--rack", file.path(), "remove", "switch"]);
    assert_eq!(removed.status.code(), Some(1));
    assert!(stderr(&removed).contains("fixed"), "{}", stderr(&removed));
}

#[test]
fn an_etcd_that_does_not_answer_is_named() {
    let file = file("membership = 'etcd:http://127.0.0.1:9'");
    let failed = run(&["members", "--rack", file.path()]);
    assert_eq!(failed.status.code(), Some(1));
    let text = stderr(&failed);
    assert!(
        text.contains("http://127.0.0.1:9") && text.contains("next:"),
        "{text}"
    );
}
