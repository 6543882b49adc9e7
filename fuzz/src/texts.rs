//! Files that people and programs hand to rackmem.

use rackmem_sim::history;

/// A configuration is read or refused. A history that is read is written and read back the same.
pub fn fuzz(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    if let Err(error) = rackmem::Config::parse(&text) {
        assert!(!error.to_string().is_empty());
    }
    let Ok(operations) = history::read(input) else {
        return;
    };
    let mut text = Vec::new();
    history::write(&mut text, &operations).expect("a vector takes any number of bytes");
    let again = history::read(text.as_slice()).expect("what was written can be read");
    assert_eq!(again, operations);
}

const CONFIG: &str = r#"
nodes = ["10.0.0.1:7401", "10.0.0.2:7401"]
switch = "10.0.0.9:7400"
block_size = 4096
cache = 268435456
memory = 4294967296
epoch = 3
patience_ms = 100
mtu = 1500
"#;

const HISTORY: &str = r#"{"client":0,"op":"set","key":"a","value":"1","invoke":100,"return":180,"outcome":"ok"}
{"client":1,"op":"get","key":"a","result":"1","invoke":150,"return":170,"outcome":"ok"}
{"client":1,"op":"incr","key":"a","value":5,"result":6,"invoke":200,"return":260,"outcome":"ok"}
{"client":0,"op":"cas","key":"a","expected":"6","value":"7","invoke":210,"outcome":"unknown"}
"#;

/// One of each.
pub fn seeds() -> Vec<Vec<u8>> {
    [CONFIG, HISTORY]
        .map(|text| text.as_bytes().to_vec())
        .into()
}
