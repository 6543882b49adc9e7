//! Graphs from text: an edge a line, `SOURCE TARGET` or `SOURCE TARGET WEIGHT`.

use crate::error::GraphError;
use crate::graph::{Edge, Graph, MAX_EDGES, MAX_VERTICES};
use std::collections::HashMap;
use std::fmt;
use std::io::{self, BufRead, Read};

/// Bytes of a line, at most.
pub const MAX_LINE_BYTES: usize = 1 << 16;
/// What comments begin with.
const COMMENTS: [char; 2] = ['#', '%'];

/// What is wrong with a line, and where.
#[derive(Debug)]
pub struct InputError {
    /// Its number, from 1 on.
    pub line: u64,
    /// What is wrong with it.
    pub fault: InputFault,
}

/// What is wrong with a line.
#[derive(Debug)]
#[non_exhaustive]
pub enum InputFault {
    /// It could not be read.
    Io(io::Error),
    /// It is longer than [`MAX_LINE_BYTES`].
    TooLong,
    /// It is no UTF-8.
    NotText,
    /// It names one vertex.
    NoTarget,
    /// It has more than three fields.
    TooMany,
    /// Its third field is no whole number that a weight may have.
    BadWeight(String),
    /// The graph is larger than this library numbers.
    Graph(GraphError),
}

impl InputError {
    /// What to do about it.
    pub fn next_step(&self) -> &'static str {
        match &self.fault {
            InputFault::Io(_) => "check the file and the disk that it is on",
            InputFault::TooLong | InputFault::NotText => {
                "give a text of one edge a line, in UTF-8: SOURCE TARGET [WEIGHT]"
            }
            InputFault::NoTarget => "write SOURCE TARGET, or put # in front of a comment",
            InputFault::TooMany => "write SOURCE TARGET [WEIGHT]; names have no spaces in them",
            InputFault::BadWeight(_) => "write a weight as a whole number from 0 to 4294967295",
            InputFault::Graph(error) => error.next_step(),
        }
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        match &self.fault {
            InputFault::Io(error) => write!(f, "{error}"),
            InputFault::TooLong => write!(f, "it is longer than {MAX_LINE_BYTES} bytes"),
            InputFault::NotText => f.write_str("it is not UTF-8"),
            InputFault::NoTarget => f.write_str("an edge needs a source and a target"),
            InputFault::TooMany => f.write_str("an edge has three fields at most"),
            InputFault::BadWeight(text) => write!(f, "`{text}` is not a weight"),
            InputFault::Graph(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for InputError {}

/// Reads a graph. Vertices are called as they are in the text, whatever that is, and are numbered
/// as they appear. Lines that are empty or begin with `#` or `%` are left out.
///
/// # Errors
/// The first line that is no edge.
pub fn read_edges(input: impl BufRead) -> Result<Graph, InputError> {
    let mut reader = Reader {
        input,
        line: 0,
        bytes: Vec::new(),
        numbers: HashMap::new(),
        names: Vec::new(),
        edges: Vec::new(),
    };
    let read = reader.read();
    let graph = read.and_then(|()| {
        let edges = std::mem::take(&mut reader.edges);
        let names = std::mem::take(&mut reader.names);
        Graph::named(names, edges).map_err(InputFault::Graph)
    });
    let line = reader.line;
    graph.map_err(|fault| InputError { line, fault })
}

struct Reader<R> {
    input: R,
    line: u64,
    bytes: Vec<u8>,
    numbers: HashMap<String, u32>,
    names: Vec<String>,
    edges: Vec<Edge>,
}

impl<R: BufRead> Reader<R> {
    fn read(&mut self) -> Result<(), InputFault> {
        loop {
            self.line += 1;
            self.bytes.clear();
            let most = MAX_LINE_BYTES as u64 + 1;
            let mut part = (&mut self.input).take(most);
            let read = part.read_until(b'\n', &mut self.bytes);
            if read.map_err(InputFault::Io)? == 0 {
                return Ok(());
            }
            if self.bytes.len() > MAX_LINE_BYTES {
                return Err(InputFault::TooLong);
            }
            let bytes = std::mem::take(&mut self.bytes);
            let text = std::str::from_utf8(&bytes).map_err(|_| InputFault::NotText)?;
            self.edge(text.trim())?;
            self.bytes = bytes;
        }
    }

    fn edge(&mut self, text: &str) -> Result<(), InputFault> {
        let mut fields = text.split_whitespace();
        let Some(source) = fields.next().filter(|it| !it.starts_with(COMMENTS)) else {
            return Ok(());
        };
        let target = fields.next().ok_or(InputFault::NoTarget)?;
        let weight = match fields.next() {
            None => 1,
            Some(text) => (text.parse()).map_err(|_| InputFault::BadWeight(text.to_owned()))?,
        };
        if fields.next().is_some() {
            return Err(InputFault::TooMany);
        }
        let (source, target) = (self.number(source)?, self.number(target)?);
        room("edges", self.edges.len(), MAX_EDGES)?;
        self.edges.push(Edge {
            source,
            target,
            weight,
        });
        Ok(())
    }

    fn number(&mut self, name: &str) -> Result<u32, InputFault> {
        if let Some(number) = self.numbers.get(name) {
            return Ok(*number);
        }
        room("vertices", self.names.len(), MAX_VERTICES)?;
        let number = self.names.len() as u32;
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        Ok(number)
    }
}

fn room(what: &'static str, is: usize, most: usize) -> Result<(), InputFault> {
    let most_there_are = most as u64;
    let error = || {
        InputFault::Graph(GraphError::TooLarge {
            what,
            most: most_there_are,
        })
    };
    if is < most { Ok(()) } else { Err(error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &[u8]) -> (u64, InputFault) {
        let error = read_edges(text).expect_err("a bad line");
        assert!(
            error
                .to_string()
                .starts_with(&format!("line {}", error.line))
        );
        assert!(!error.next_step().is_empty());
        (error.line, error.fault)
    }

    #[test]
    fn edges_are_read_with_names_and_weights() {
        let graph = read_edges(&b"# a comment\n\nb a\r\na\tb 7\n% more\n b  b"[..]).unwrap();
        assert_eq!(graph.vertices(), 2);
        assert_eq!(graph.find("a"), Some(1));
        let edges: Vec<_> = graph
            .edges()
            .iter()
            .map(|it| (it.source, it.target, it.weight))
            .collect();
        assert_eq!(edges, [(0, 0, 1), (0, 1, 1), (1, 0, 7)]);
        assert_eq!(read_edges(&b""[..]).unwrap().vertices(), 0);
    }

    #[test]
    fn a_bad_line_is_named() {
        assert!(matches!(fault(b"a b\nc\n"), (2, InputFault::NoTarget)));
        assert!(matches!(fault(b"a b 1 2"), (1, InputFault::TooMany)));
        assert!(matches!(fault(b"#\n\na b -1"), (3, InputFault::BadWeight(text)) if text == "-1"));
        assert!(matches!(fault(b"a b\n\xff b"), (2, InputFault::NotText)));
        let long = [b'a'; MAX_LINE_BYTES + 1];
        assert!(matches!(fault(&long), (1, InputFault::TooLong)));
    }
}
