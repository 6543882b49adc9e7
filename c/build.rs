//! Gives the library the name by which programs are bound to it.

/// The version of the binary interface: it rises when a program that was built before cannot use a
/// newer library. The same as `status::ABI`.
const ABI: u32 = 0;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,librackmem.so.{ABI}");
}
