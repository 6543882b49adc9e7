//! `include/rackmem.h` declares what the library has, and nothing else: each function with its
//! parameters, each value of an enumeration, each field of a structure, each constant.

use std::path::Path;

/// Types of parameters and fields, in Rust and in C.
const TYPES: [(&str, &str); 10] = [
    ("usize", "size_t"),
    ("u64", "uint64_t"),
    ("i64", "int64_t"),
    ("u32", "uint32_t"),
    ("i32", "int32_t"),
    ("u8", "uint8_t"),
    ("bool", "bool"),
    ("c_char", "char"),
    ("c_int", "int"),
    ("c_void", "void"),
];

/// A type of Rust as C writes it, without spaces.
fn in_c(of: &str) -> String {
    let of = of.trim();
    if let Some(inner) = of.strip_prefix("*mut ") {
        return in_c(inner) + "*";
    }
    if let Some(inner) = of.strip_prefix("*const ") {
        return format!("const{}*", in_c(inner));
    }
    let found = TYPES.iter().find(|row| row.0 == of);
    found.map_or(of.to_owned(), |row| row.1.to_owned())
}

/// `name: type` of Rust, as C writes it.
fn named(text: &str) -> String {
    let (name, of) = text.split_once(':').expect("a name and a type");
    in_c(of) + name.trim().trim_start_matches("pub ")
}

fn parts(text: &str, mark: char) -> impl Iterator<Item = &str> {
    text.split(mark)
        .map(str::trim)
        .filter(|part| !part.is_empty())
}

fn without_spaces(text: &str) -> String {
    text.split_whitespace().collect()
}

/// What stands between two marks, each time.
fn between<'a>(text: &'a str, first: &'a str, last: char) -> impl Iterator<Item = &'a str> {
    let behind = text.split(first).skip(1);
    behind.map(move |part| part.split_once(last).expect("an end").0)
}

/// What C has to be told of a source, without spaces.
fn declarations(source: &str) -> Vec<String> {
    let code = source.lines().map(str::trim).filter(|line| {
        let aside = line.starts_with("//") || line.starts_with("#[") && *line != "#[repr(C)]";
        !aside
    });
    let code = code.collect::<Vec<_>>().join(" ");
    let functions = between(&code, "extern \"C\" fn ", '{').map(|head| {
        let (call, gives) = head.rsplit_once(')').expect("parameters");
        let (name, taken) = call.split_once('(').expect("parameters");
        let gives = gives.trim().strip_prefix("->").map_or("void".into(), in_c);
        let taken: Vec<String> = parts(taken, ',').map(named).collect();
        let taken = if taken.is_empty() {
            "void".into()
        } else {
            taken.join(",")
        };
        format!("{gives}{name}({taken});")
    });
    let kinds = between(&code, "#[repr(C)] pub ", '}').map(|text| {
        let (head, body) = text.split_once('{').expect("a body");
        match head.trim().split_once(' ').expect("a name") {
            ("enum", name) => format!("typedefenum{{{}}}{name};", without_spaces(body)),
            (_, name) => {
                let fields: String = parts(body, ',').map(|field| named(field) + ";").collect();
                format!("typedefstruct{{{fields}}}{name};")
            }
        }
    });
    let constants = between(&code, "pub const RM_", ';').map(|text| {
        let (name, value) = text.split_once('=').expect("a value");
        let name = name.split_once(':').expect("a type").0;
        format!("#defineRM_{name}{}", value.trim())
    });
    let callbacks = between(&code, "pub type ", ';').filter(|text| text.contains("extern"));
    let callbacks = callbacks.map(|text| {
        let (name, of) = text.split_once('=').expect("what it is");
        let (_, of) = of.split_once("fn(").expect("a function");
        let (taken, gives) = of.rsplit_once(')').expect("parameters");
        let gives = gives.trim_matches(|c: char| " ->,".contains(c));
        let taken: Vec<String> = parts(taken, ',').map(named).collect();
        format!(
            "typedef{}(*{})({});",
            in_c(gives),
            name.trim(),
            taken.join(",")
        )
    });
    functions
        .chain(kinds)
        .chain(constants)
        .chain(callbacks)
        .collect()
}

#[test]
fn the_header_is_of_the_library() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources = std::fs::read_dir(here.join("src")).unwrap();
    let sources = sources.map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap());
    let has: Vec<String> = sources.flat_map(|source| declarations(&source)).collect();
    assert!(has.len() > 40, "{has:?}");

    let header = std::fs::read_to_string(here.join("include/rackmem.h")).unwrap();
    let comments = header.split("/*").skip(1);
    let comments = comments.map(|text| text.split_once("*/").expect("an end").0);
    let code = comments.fold(header.clone(), |code, text| {
        code.replace(&format!("/*{text}*/"), "")
    });
    let mut code = without_spaces(&code);
    for declaration in &has {
        let found = code.matches(declaration.as_str()).count();
        assert_eq!(found, 1, "the header has not once: {declaration}");
        code = code.replacen(declaration.as_str(), "", 1);
    }
    // What is left has no function, value or structure.
    assert!(!code.contains(");"), "more than the library has: {code}");
    assert!(
        !code.contains("typedefenum") && !code.contains('='),
        "more: {code}"
    );
}

/// Functions that the shared library has, with the version of each.
#[test]
fn each_function_has_a_version() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(here.join(path)).unwrap();
    let map = read("rackmem.map");
    let lines = map.lines().map(str::trim);
    let mut listed: Vec<&str> = lines.filter_map(|line| line.strip_suffix(';')).collect();
    listed.retain(|name| !name.contains(['}', '*']));
    listed.sort();
    let sources = std::fs::read_dir(here.join("src")).unwrap();
    let sources: Vec<String> = sources
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    let has = sources.iter().flat_map(|source| {
        let heads = between(source, "extern \"C\" fn ", '{');
        heads.filter_map(|head| head.split_once('(').map(|(name, _)| name))
    });
    let mut has: Vec<&str> = has.filter(|name| !name.is_empty()).collect();
    has.sort();
    assert_eq!(listed, has);
}

#[test]
fn a_source_is_read_as_c_writes_it() {
    let source = "
        /// What it is.
        #[repr(C)]
        #[derive(Clone)]
        pub enum rm_kind {
            /// One.
            RM_ONE = 1,
        }
        #[repr(C)]
        pub struct rm_at {
            pub addr: u64,
            pub name: *const c_char,
        }
        pub const RM_LIMIT: i64 = -1;
        pub unsafe extern \"C\" fn rm_do(
            it: *const rm_at,
            out: *mut *mut rm_it,
        ) -> rm_status { }
        pub extern \"C\" fn rm_end() { }
        pub type rm_body =
            Option<unsafe extern \"C\" fn(it: *mut rm_it, n: u64) -> rm_status>;
    ";
    assert_eq!(
        declarations(source),
        [
            "rm_statusrm_do(constrm_at*it,rm_it**out);",
            "voidrm_end(void);",
            "typedefenum{RM_ONE=1,}rm_kind;",
            "typedefstruct{uint64_taddr;constchar*name;}rm_at;",
            "#defineRM_LIMIT-1",
            "typedefrm_status(*rm_body)(rm_it*it,uint64_tn);",
        ]
    );
}
