//! Elements of listpacks: read for every type, written for streams, which have no plainer encoding.

use super::packed::{Cursor, Element, Wrong};

const ENCODING: Wrong = "an unknown encoding in a listpack";
/// Bytes before the first element.
const HEADER: usize = 6;

/// Takes the next element.
pub(crate) fn element<'a>(cursor: &mut Cursor<'a>) -> Result<Element<'a>, Wrong> {
    let start = *cursor.at;
    let first = cursor.byte()?;
    let low = usize::from(first & 15);
    let len = match first {
        0..=0x7f => return number(cursor, start, first.into()),
        0x80..=0xbf => usize::from(first & 63),
        0xc0..=0xdf => {
            let value = i64::from(first & 31) << 8 | i64::from(cursor.byte()?);
            return number(cursor, start, value << 51 >> 51);
        }
        0xe0..=0xef => low << 8 | usize::from(cursor.byte()?),
        0xf0 => u32::from_le_bytes(cursor.array()?) as usize,
        0xf1..=0xf3 => {
            let value = cursor.integer(low + 1)?;
            return number(cursor, start, value);
        }
        0xf4 => {
            let value = cursor.integer(8)?;
            return number(cursor, start, value);
        }
        _ => return Err(ENCODING),
    };
    let bytes = cursor.take(len)?;
    skip_length(cursor, start)?;
    Ok(Element::Bytes(bytes))
}

fn number<'a>(cursor: &mut Cursor<'a>, start: usize, value: i64) -> Result<Element<'a>, Wrong> {
    skip_length(cursor, start)?;
    Ok(Element::Int(value))
}

/// Behind an element is its length, for who reads backwards.
fn skip_length(cursor: &mut Cursor<'_>, start: usize) -> Result<(), Wrong> {
    cursor.take(length_bytes(*cursor.at - start))?;
    Ok(())
}

/// Bytes that the length of an element takes behind it.
fn length_bytes(len: usize) -> usize {
    match len {
        ..0x80 => 1,
        0x80..0x4000 => 2,
        0x4000..0x20_0000 => 3,
        0x20_0000..0x1000_0000 => 4,
        _ => 5,
    }
}

/// A listpack that is being written.
#[derive(Debug)]
pub(crate) struct ListPack {
    bytes: Vec<u8>,
    count: usize,
}

impl ListPack {
    pub fn new() -> Self {
        Self {
            bytes: vec![0; HEADER],
            count: 0,
        }
    }

    pub fn integer(&mut self, value: i64) {
        let start = self.bytes.len();
        let width = match value {
            0..=127 => {
                self.bytes.push(value as u8);
                0
            }
            -4096..=4095 => {
                let [high, low] = (value as u16).to_be_bytes();
                self.bytes.extend([0xc0 | high & 31, low]);
                0
            }
            -0x8000..=0x7fff => 2,
            -0x80_0000..=0x7f_ffff => 3,
            -0x8000_0000..=0x7fff_ffff => 4,
            _ => 8,
        };
        if width != 0 {
            self.bytes.push(0xf0 | (width as u8 - 1).min(4));
            self.bytes.extend_from_slice(&value.to_le_bytes()[..width]);
        }
        self.finish(start);
    }

    pub fn string(&mut self, bytes: &[u8]) {
        let (start, len) = (self.bytes.len(), bytes.len());
        match len {
            ..64 => self.bytes.push(0x80 | len as u8),
            64..4096 => self.bytes.extend([0xe0 | (len >> 8) as u8, len as u8]),
            _ => {
                self.bytes.push(0xf0);
                self.bytes.extend((len as u32).to_le_bytes());
            }
        }
        self.bytes.extend_from_slice(bytes);
        self.finish(start);
    }

    /// The length of the element since `start`, seven bits a byte, the highest first; all but the
    /// first byte have the eighth.
    fn finish(&mut self, start: usize) {
        let len = self.bytes.len() - start;
        let bytes = length_bytes(len);
        for place in (0..bytes).rev() {
            let more = if place + 1 == bytes { 0 } else { 0x80 };
            self.bytes.push((len >> (7 * place)) as u8 & 0x7f | more);
        }
        self.count += 1;
    }

    pub fn into_bytes(mut self) -> Vec<u8> {
        self.bytes.push(0xff);
        let size = self.bytes.len() as u32;
        let count = u16::try_from(self.count).unwrap_or(u16::MAX);
        self.bytes[..4].copy_from_slice(&size.to_le_bytes());
        self.bytes[4..HEADER].copy_from_slice(&count.to_le_bytes());
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::super::packed::{Form, Packed};
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let numbers = [
            0,
            127,
            128,
            -1,
            -4096,
            4095,
            4096,
            -4097,
            32767,
            -32768,
            32768,
            8_388_607,
            -8_388_608,
            8_388_608,
            i64::from(i32::MAX),
            i64::from(i32::MIN),
            1 << 31,
            i64::MAX,
            i64::MIN,
        ];
        let strings = [0, 1, 63, 64, 126, 127, 128, 4095, 4096, 16380, 16384, 70000];
        let mut written = ListPack::new();
        numbers.iter().for_each(|number| written.integer(*number));
        for len in strings {
            written.string(&vec![b'x'; len]);
        }
        let mut packed = Packed::new(Form::ListPack, written.into_bytes()).unwrap();
        for number in numbers {
            assert_eq!(packed.next().unwrap(), Some(Element::Int(number)));
        }
        for len in strings {
            let want = vec![b'x'; len];
            assert_eq!(packed.next().unwrap(), Some(Element::Bytes(&want)));
        }
        assert_eq!(packed.next().unwrap(), None);
    }
}
