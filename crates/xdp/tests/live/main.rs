//! The program on real interfaces: hosts in network namespaces, in native and in generic mode.
//!
//! The processes of the test are this program again, with a part to play.

#[cfg(feature = "xdp")]
mod ends;
#[cfg(feature = "xdp")]
mod story;

fn main() {
    #[cfg(feature = "xdp")]
    {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        if ends::play(&arguments) {
            return;
        }
        story::run();
    }
}
