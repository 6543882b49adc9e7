//! The words of a command, where they lie in the buffer they came in.

/// Start and end of a word.
pub(crate) type Span = (u32, u32);

/// A command's words, its name first.
#[derive(Clone, Copy)]
pub(crate) struct Args<'a> {
    bytes: &'a [u8],
    spans: &'a [Span],
}

impl<'a> Args<'a> {
    pub fn new(bytes: &'a [u8], spans: &'a [Span]) -> Self {
        Self { bytes, spans }
    }

    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// The word at `i`; empty when there are not so many.
    #[inline]
    pub fn at(&self, i: usize) -> &'a [u8] {
        self.get(i).unwrap_or_default()
    }

    /// The word at `i`.
    #[inline]
    pub fn get(&self, i: usize) -> Option<&'a [u8]> {
        let (start, end) = *self.spans.get(i)?;
        self.bytes.get(start as usize..end as usize)
    }

    /// The words from `i` on.
    pub fn from(&self, i: usize) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        let bytes = self.bytes;
        let rest = self.spans.get(i..).unwrap_or_default();
        rest.iter().map(move |(start, end)| {
            bytes
                .get(*start as usize..*end as usize)
                .unwrap_or_default()
        })
    }

    /// Without the first `n` words.
    pub fn without(&self, n: usize) -> Self {
        Self {
            bytes: self.bytes,
            spans: self.spans.get(n..).unwrap_or_default(),
        }
    }

    /// Whether the word at `i` is `word` (given in lower case), in any case.
    pub fn is(&self, i: usize, word: &str) -> bool {
        self.at(i).eq_ignore_ascii_case(word.as_bytes())
    }

    /// Bytes in all words.
    pub fn size(&self) -> usize {
        self.spans
            .iter()
            .map(|(start, end)| (end - start) as usize)
            .sum()
    }
}

/// Words that outlive the buffer they came in.
#[derive(Debug)]
pub(crate) struct OwnedArgs {
    bytes: Vec<u8>,
    spans: Vec<Span>,
}

impl From<Args<'_>> for OwnedArgs {
    fn from(args: Args<'_>) -> Self {
        Self::with(args, &[])
    }
}

impl OwnedArgs {
    /// Words of which some are others.
    pub fn with(args: Args<'_>, others: &[(usize, Vec<u8>)]) -> Self {
        let mut owned = Self {
            bytes: Vec::with_capacity(args.size()),
            spans: Vec::with_capacity(args.len()),
        };
        for (i, word) in args.from(0).enumerate() {
            let other = others.iter().find(|(at, _)| *at == i);
            owned.push(other.map_or(word, |(_, other)| other));
        }
        owned
    }

    /// These words.
    #[cfg(test)]
    pub fn of(words: &[&[u8]]) -> Self {
        let (bytes, spans) = (Vec::new(), Vec::new());
        let mut owned = Self { bytes, spans };
        words.iter().for_each(|word| owned.push(word));
        owned
    }

    fn push(&mut self, word: &[u8]) {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(word);
        self.spans.push((start, self.bytes.len() as u32));
    }

    pub fn args(&self) -> Args<'_> {
        Args::new(&self.bytes, &self.spans)
    }
}
