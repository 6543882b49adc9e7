//! Strings compressed by LZF, as Redis does: pieces that are copied from the input or, a little
//! before, from the output.

/// The `len` bytes that were compressed to `input`; `None`: they were not.
pub(crate) fn expand(input: &[u8], len: usize) -> Option<Vec<u8>> {
    // 3 bytes stand for 264 at most.
    let mut out = Vec::with_capacity(len.min(input.len().saturating_mul(88)));
    let mut bytes = input.iter();
    while let Some(&control) = bytes.next() {
        if control < 32 {
            let (piece, rest) = bytes
                .as_slice()
                .split_at_checked(usize::from(control) + 1)?;
            out.extend_from_slice(piece);
            bytes = rest.iter();
        } else {
            let short = usize::from(control >> 5);
            let more = if short == 7 { *bytes.next()? } else { 0 };
            let count = short + usize::from(more) + 2;
            let back = usize::from(control & 31) << 8 | usize::from(*bytes.next()?);
            let from = out.len().checked_sub(back + 1)?;
            // A piece may go on into what it makes itself.
            for at in from..from + count {
                out.push(*out.get(at)?);
            }
        }
        if out.len() > len {
            return None;
        }
    }
    (out.len() == len).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_both_kinds() {
        assert_eq!(expand(b"\x02abc", 3).unwrap(), b"abc");
        // "a", then seven bytes from one byte before.
        assert_eq!(expand(b"\x00a\xa0\x00", 8).unwrap(), b"aaaaaaaa");
        // The long form: 7 + 3 + 2 bytes.
        assert_eq!(
            expand(b"\x01ab\xe0\x03\x01", 14).unwrap(),
            b"abababababababab"[..14]
        );
    }

    #[test]
    fn what_is_not_compressed_is_refused() {
        for (input, len) in [
            (&b"\x02ab"[..], 3),
            (b"\x20\x00", 3),
            (b"\x00a\x20", 4),
            (b"\x00a\xe0", 4),
            (b"\x00a\xa0\x00", 7),
            (b"\x00a\xa0\x00", 9),
            (b"\x00a\xa0\x01", 8),
            (b"", 1),
        ] {
            assert_eq!(expand(input, len), None, "{input:?}");
        }
    }
}
