//! What runs in the kernel: copies and their homes behind a switch there, objects, items of bounded
//! memory, lines of replicated memory and blocks that are read there, and cached copies that are
//! invalidated and given there. Hosts are network namespaces; native and generic mode.
//!
//! The processes of a test are this program again, with a part to play; so is each test, since all
//! of them wait most of the time.

#[cfg(feature = "xdp")]
mod blocks;
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
mod lines;
#[cfg(feature = "xdp")]
mod player;
#[cfg(feature = "xdp")]
mod reads;
#[cfg(feature = "xdp")]
mod rig;
#[cfg(feature = "xdp")]
mod tests;

fn main() {
    #[cfg(feature = "xdp")]
    {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        match &arguments[..] {
            [part, mode, file, ports @ ..] if part == "play-switch" => {
                rig::play_switch(mode, file.as_ref(), ports);
            }
            [part, reads, folder] if part == "play-home" => {
                reads::play_home(reads, folder.as_ref());
            }
            [part, reads, folder] if part == items::PART => {
                items::play_home(reads, folder.as_ref());
            }
            [part, reads, folder] if lines::PART.contains(&&part[..]) => {
                lines::play_member(part, reads, folder.as_ref());
            }
            [part, reads, folder] if blocks::PARTS.iter().any(|known| known.0 == part) => {
                blocks::play_home(part, reads, folder.as_ref());
            }
            [part, reads, folder] if cache::PARTS.iter().any(|known| known.0 == part) => {
                cache::play_sharer(part, reads, folder.as_ref());
            }
            [part, name, mode] if part == tests::PART => tests::play(name, mode),
            words => tests::run(words),
        }
    }
}
