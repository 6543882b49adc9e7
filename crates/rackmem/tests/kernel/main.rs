//! Regions with copies behind a switch in the kernel: hosts in network namespaces, in native and in
//! generic mode.
//!
//! The switch's process is this program again, with a part to play.

#[cfg(feature = "xdp")]
mod copies;

fn main() {
    #[cfg(feature = "xdp")]
    {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        if let [part, mode, folder, ports @ ..] = &arguments[..]
            && part == "play-switch"
        {
            return copies::play_switch(mode, folder.as_ref(), ports);
        }
        copies::run();
    }
}
