//! What the switch program asks of an ASIC, told without a rack.

use crate::process::run;

#[test]
fn resources_are_told_beside_the_papers_for_any_size() {
    let output = run(&["switch", "--resources", "--json"]);
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&told["stages"], &told["entries"]),
        (&10.into(), &262_144.into())
    );
    assert_eq!(told["paper"]["entries"], 375_000);
    let small = run(&["switch", "--resources", "--ways", "2", "--sets", "1024"]);
    let text = String::from_utf8_lossy(&small.stdout);
    assert!(text.contains("2 ways of 1 024 entries"), "{text}");
    let wrong = run(&["switch", "--resources", "--sets", "1000"]);
    assert_eq!(wrong.status.code(), Some(2));
}
