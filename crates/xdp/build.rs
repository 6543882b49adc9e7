//! Compiles switch/xdp with clang, if the feature asks for it.
//!
//! The tables of the program's hash come from the Rust code that has the same,
//! so they cannot differ.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "xdp")]
    compiler::run();
}

#[cfg(feature = "xdp")]
mod compiler {
    use rackmem_proto::abd::{GROUPS, mirror};
    use rackmem_proto::bi::cached::{MAX_ITEM, shelf};
    use rackmem_proto::flowcc::{desk, twin};
    use rackmem_proto::sabre::class_bytes;
    use rackmem_proto::switch::crc32;
    use rackmem_proto::wire::Flags;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    /// The sources, from this package's folder.
    const SOURCES: &str = "../../switch/xdp";
    /// What they include of `crates/wire`, made by `cargo xtask golden`.
    const GENERATED: &str = "../../switch/generated/wire.h";
    /// What is compiled, and the name of the object.
    const OBJECTS: [(&str, &str); 4] = [
        ("rackmem.bpf.c", "rackmem.bpf.o"),
        ("objects.bpf.c", "objects.bpf.o"),
        ("blocks.bpf.c", "blocks.bpf.o"),
        ("bare.bpf.c", "bare.bpf.o"),
    ];

    pub fn run() {
        println!("cargo:rerun-if-changed={SOURCES}");
        println!("cargo:rerun-if-changed={GENERATED}");
        let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
        if let Err(why) = objects(&out) {
            println!("cargo:warning=the XDP program was not compiled: {why}");
            std::process::exit(1);
        }
    }

    fn objects(out: &Path) -> Result<(), String> {
        let text = |error: std::io::Error| error.to_string();
        std::fs::write(out.join("tables.gen.h"), tables()).map_err(text)?;
        // What tests compile programs with planted differences with.
        std::fs::write(out.join("clang.txt"), arguments(out).join("\n")).map_err(text)?;
        OBJECTS
            .iter()
            .try_for_each(|(source, object)| compile(source, object, out))
    }

    fn arguments(out: &Path) -> Vec<String> {
        let arch = std::env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
        let words = "-O2 -g -Wall -Wextra -Werror -Wno-unused-parameter -target bpf -mcpu=v3 -c";
        let mut arguments: Vec<String> = words.split(' ').map(String::from).collect();
        // Where Debian has the headers that differ between processors.
        arguments.push(format!("-I/usr/include/{arch}-linux-gnu"));
        arguments.push(format!("-I{}", out.display()));
        arguments
    }

    fn compile(source: &str, object: &str, out: &Path) -> Result<(), String> {
        let mut clang = Command::new("clang");
        clang.args(arguments(out)).arg("-DPLANT=0");
        clang
            .arg(Path::new(SOURCES).join(source))
            .arg("-o")
            .arg(out.join(object));
        let output = clang.output().map_err(|error| {
            format!("clang did not start ({error}). On Debian: apt-get install clang libbpf-dev")
        })?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let first = said.lines().find(|line| line.contains("error:"));
        let hint = if said.contains("file not found") {
            ". On Debian: apt-get install libbpf-dev linux-libc-dev"
        } else {
            ""
        };
        Err(format!("{}{hint}", first.unwrap_or("clang failed")))
    }

    /// The tables, as a header.
    fn tables() -> String {
        // The hash is linear: what a byte contributes is how the sum of it alone differs from the
        // sum of nothing.
        let crc = |place: usize| (0..256u64).map(move |byte| crc32(byte << (8 * place)) ^ crc32(0));
        let rows = (0..8).map(|place| format!("{{ {} }}", list(crc(place))));
        // Any multiplier would do that puts different bits on top for every power of two,
        // as a de Bruijn sequence does.
        let multiplier = 0x077c_b531_u32;
        let mut lowest = [0u32; 32];
        for bit in 0..32 {
            lowest[(multiplier.wrapping_mul(1 << bit) >> 27) as usize] = bit;
        }
        let mut text = String::from("// Made by crates/xdp/build.rs.\n#pragma once\n");
        for (declaration, values) in [
            ("__u32 CRC[8][256]", list(rows)),
            ("__u8 LOWEST[32]", list(lowest.iter())),
        ] {
            text.push_str(&format!("const {declaration} = {{ {values} }};\n"));
        }
        text.push_str(&format!("#define LOWEST_MULTIPLIER {multiplier:#x}u\n"));
        // What the program shares with a node's cache.
        for (name, at) in [
            ("EPOCH", desk::EPOCH),
            ("INSIDE", desk::INSIDE),
            ("NODE", desk::NODE),
            ("AGENT", desk::AGENT),
            ("SET_MASK", desk::SET_MASK),
            ("BLOCK", desk::BLOCK),
            ("SEGMENT", desk::SEGMENT),
            ("INCARNATIONS", desk::INCARNATIONS),
            ("ADDRESSES", desk::ADDRESSES),
            ("MACS", desk::MACS),
            ("PORTS", desk::PORTS),
            ("COUNTS", desk::COUNTS),
            ("GIVEN", desk::GIVEN),
            ("ROWS", desk::ROWS),
            ("WORDS", desk::WORDS),
        ] {
            text.push_str(&format!("#define DESK_{name} {at}\n"));
        }
        text.push_str(&format!("#define CACHE_SLAB {}\n", desk::CACHE_SLAB));
        // Where items of bounded memory lie.
        let [name, writes, shape, first] = shelf::ROW;
        for (what, number) in [
            ("ROWS", shelf::SHELF_ROWS),
            ("STEP", shelf::SHELF_STEP),
            ("MAX_ITEM", MAX_ITEM.into()),
            ("NAME", name as u64),
            ("WRITES", writes as u64),
            ("SHAPE", shape as u64),
            ("FIRST", first as u64),
        ] {
            text.push_str(&format!("#define SHELF_{what} {number}\n"));
        }
        // Where lines of replicated memory lie.
        let [name, line, bytes, first] = mirror::ROW;
        for (what, number) in [
            ("GROUPS", GROUPS as u64),
            ("MOST", mirror::MIRROR_LINE.into()),
            ("SLAB", mirror::MIRROR_SLAB),
            ("NAME", name as u64),
            ("LINE", line as u64),
            ("BYTES", bytes as u64),
            ("FIRST", first as u64),
        ] {
            text.push_str(&format!("#define MIRROR_{what} {number}\n"));
        }
        // Where blocks lie that the switch decides about.
        let [
            block,
            sets,
            node,
            epoch,
            segment,
            addresses,
            macs,
            incarnations,
        ] = twin::FRONT;
        let [version, name] = twin::PLACE;
        for (what, number) in [
            ("SLAB", twin::TWIN_SLAB),
            ("BLOCK_MOST", twin::TWIN_BLOCK.into()),
            ("WAYS", twin::WAYS as u64),
            ("BLOCK", block as u64),
            ("SETS", sets as u64),
            ("NODE", node as u64),
            ("EPOCH", epoch as u64),
            ("SEGMENT", segment as u64),
            ("ADDRESSES", addresses as u64),
            ("MACS", macs as u64),
            ("INCARNATIONS", incarnations as u64),
            ("VERSION", version as u64),
            ("NAME", name as u64),
        ] {
            text.push_str(&format!("#define TWIN_{what} {number}\n"));
        }
        text.push_str(&format!("#define TWIN_SPREAD {:#x}ull\n", twin::SPREAD));
        text.push_str(&format!("#define FLAGS_KNOWN {:#x}\n", Flags::KNOWN));
        // Bytes of objects by the class of their slab; of class 0 there are none.
        let classes = (1..=u8::MAX).map_while(class_bytes);
        let classes: Vec<u32> = [0].into_iter().chain(classes).collect();
        text.push_str(&format!(
            "#define OBJECT_CLASSES {}\nconst __u32 OBJECT_BYTES[OBJECT_CLASSES] = {{ {} }};\n",
            classes.len(),
            list(classes.iter())
        ));
        text
    }

    fn list(values: impl Iterator<Item = impl ToString>) -> String {
        let values: Vec<String> = values.map(|value| value.to_string()).collect();
        values.join(", ")
    }
}
