//! Small collections that Redis packs into one string: ziplists, listpacks, zipmaps, sets of
//! integers. Elements are taken from it one after the other.

use super::listpack;

/// What is wrong with a packed string.
pub(crate) type Wrong = &'static str;

const SHORT: Wrong = "a packed collection that ends in the middle of an element";
const END: Wrong = "a packed collection whose end is not where it should be";
const SIZE: Wrong = "a packed collection of another length than it says";
const COUNT: Wrong = "a packed collection of another number of elements than it says";
const ENCODING: Wrong = "an unknown encoding in a packed collection";

/// A count that does not say how many elements there are.
const UNKNOWN: u16 = u16::MAX;
/// What ends ziplists, listpacks and zipmaps.
const TERMINATOR: u8 = 0xff;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    ZipList,
    ListPack,
    ZipMap,
    IntSet,
    /// The string is the only element.
    Lone,
}

/// An element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element<'a> {
    Int(i64),
    Bytes(&'a [u8]),
}

impl Element<'_> {
    /// As a string: integers in decimal digits.
    pub fn to_bytes(self) -> Vec<u8> {
        match self {
            Self::Int(number) => number.to_string().into_bytes(),
            Self::Bytes(bytes) => bytes.to_vec(),
        }
    }
}

/// A packed collection, and how far it has been read.
#[derive(Debug)]
pub(crate) struct Packed {
    bytes: Vec<u8>,
    at: usize,
    form: Form,
    /// Elements taken.
    taken: usize,
    /// Elements that there are, if it says so.
    count: Option<usize>,
    /// Bytes of an integer in a set of integers.
    width: usize,
}

/// Bytes in the order they are read.
pub(crate) struct Cursor<'a> {
    pub bytes: &'a [u8],
    pub at: &'a mut usize,
}

impl<'a> Cursor<'a> {
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], Wrong> {
        let end = self.at.checked_add(len).ok_or(SHORT)?;
        let taken = self.bytes.get(*self.at..end).ok_or(SHORT)?;
        *self.at = end;
        Ok(taken)
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Wrong> {
        self.take(N)?.try_into().map_err(|_| SHORT)
    }

    pub fn byte(&mut self) -> Result<u8, Wrong> {
        Ok(self.array::<1>()?[0])
    }

    /// A signed integer of `width` bytes, the lowest first.
    pub fn integer(&mut self, width: usize) -> Result<i64, Wrong> {
        let (mut wide, unused) = ([0; 8], 64 - 8 * width as u32);
        wide[..width].copy_from_slice(self.take(width)?);
        Ok(i64::from_le_bytes(wide) << unused >> unused)
    }
}

impl Packed {
    pub fn new(form: Form, bytes: Vec<u8>) -> Result<Self, Wrong> {
        let mut packed = Self {
            bytes,
            at: 0,
            form,
            taken: 0,
            count: None,
            width: 0,
        };
        packed.open()?;
        Ok(packed)
    }

    /// Reads what is before the first element.
    fn open(&mut self) -> Result<(), Wrong> {
        let len = self.bytes.len();
        let mut cursor = Cursor {
            bytes: &self.bytes,
            at: &mut self.at,
        };
        let known = |count: [u8; 2]| match u16::from_le_bytes(count) {
            UNKNOWN => None,
            count => Some(count.into()),
        };
        let (size, count) = match self.form {
            Form::Lone => (len, Some(1)),
            Form::ListPack => (
                u32::from_le_bytes(cursor.array()?) as usize,
                known(cursor.array()?),
            ),
            Form::ZipList => {
                let size = u32::from_le_bytes(cursor.array()?) as usize;
                cursor.take(4)?; // where the last element begins
                (size, known(cursor.array()?))
            }
            // It counts pairs, and only up to 253 of them.
            Form::ZipMap => match cursor.byte()? {
                254.. => (len, None),
                pairs => (len, Some(2 * usize::from(pairs))),
            },
            Form::IntSet => {
                self.width = u32::from_le_bytes(cursor.array()?) as usize;
                if ![2, 4, 8].contains(&self.width) {
                    return Err(ENCODING);
                }
                let count = u32::from_le_bytes(cursor.array()?) as usize;
                (
                    8usize.saturating_add(count.saturating_mul(self.width)),
                    Some(count),
                )
            }
        };
        self.count = count;
        if size == len { Ok(()) } else { Err(SIZE) }
    }

    /// Bytes in it.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The next element.
    pub fn next(&mut self) -> Result<Option<Element<'_>>, Wrong> {
        if self.is_over()? {
            return Ok(None);
        }
        let mut cursor = Cursor {
            bytes: &self.bytes,
            at: &mut self.at,
        };
        let element = match self.form {
            Form::Lone => Element::Bytes(cursor.take(self.bytes.len())?),
            Form::ListPack => listpack::element(&mut cursor)?,
            Form::ZipList => ziplist_element(&mut cursor)?,
            Form::ZipMap => zipmap_element(&mut cursor, self.taken % 2 == 1)?,
            Form::IntSet => Element::Int(cursor.integer(self.width)?),
        };
        self.taken += 1;
        Ok(Some(element))
    }

    /// Whether the last element has been taken; then nothing may follow it.
    fn is_over(&self) -> Result<bool, Wrong> {
        let left = &self.bytes[self.at..];
        let over = match self.form {
            Form::Lone => self.taken == 1,
            Form::IntSet => left.is_empty(),
            _ => *left.first().ok_or(SHORT)? == TERMINATOR,
        };
        if !over {
            return Ok(false);
        }
        let ends = left.len() <= 1;
        match self.count {
            _ if !ends => Err(END),
            Some(count) if count != self.taken => Err(COUNT),
            _ => Ok(true),
        }
    }
}

fn ziplist_element<'a>(cursor: &mut Cursor<'a>) -> Result<Element<'a>, Wrong> {
    // The length of the element before, for who reads backwards.
    if cursor.byte()? == 254 {
        cursor.take(4)?;
    }
    let first = cursor.byte()?;
    let low = usize::from(first & 63);
    let len = match first {
        0..=0x3f => low,
        0x40..=0x7f => low << 8 | usize::from(cursor.byte()?),
        0x80 => u32::from_be_bytes(cursor.array()?) as usize,
        0xc0 => return Ok(Element::Int(cursor.integer(2)?)),
        0xd0 => return Ok(Element::Int(cursor.integer(4)?)),
        0xe0 => return Ok(Element::Int(cursor.integer(8)?)),
        0xf0 => return Ok(Element::Int(cursor.integer(3)?)),
        0xfe => return Ok(Element::Int(cursor.integer(1)?)),
        0xf1..=0xfd => return Ok(Element::Int(i64::from(first & 15) - 1)),
        _ => return Err(ENCODING),
    };
    Ok(Element::Bytes(cursor.take(len)?))
}

/// Of a pair, the value has room behind it.
fn zipmap_element<'a>(cursor: &mut Cursor<'a>, value: bool) -> Result<Element<'a>, Wrong> {
    let len = match cursor.byte()? {
        254 => u32::from_le_bytes(cursor.array()?) as usize,
        TERMINATOR => return Err(END),
        len => len.into(),
    };
    let room = if value { cursor.byte()? } else { 0 };
    let bytes = cursor.take(len)?;
    cursor.take(room.into())?;
    Ok(Element::Bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(form: Form, bytes: &[u8]) -> Result<Vec<String>, Wrong> {
        let mut packed = Packed::new(form, bytes.to_vec())?;
        let mut all = Vec::new();
        while let Some(element) = packed.next()? {
            all.push(String::from_utf8(element.to_bytes()).unwrap());
        }
        Ok(all)
    }

    #[test]
    fn elements_in_every_encoding() {
        // Two pairs; one value has two bytes of room behind it.
        let zipmap = b"\x02\x03foo\x03\x00bar\x05hello\x05\x02worldxx\xff";
        assert_eq!(
            all(Form::ZipMap, zipmap).unwrap(),
            ["foo", "bar", "hello", "world"]
        );
        let intset = b"\x04\0\0\0\x02\0\0\0\xff\xff\xff\xff\x00\x00\x01\x00";
        assert_eq!(all(Form::IntSet, intset).unwrap(), ["-1", "65536"]);
        let ziplist = b"\x1b\0\0\0\x16\0\0\0\x05\0\
            \x00\x02hi\x04\xfe\xff\x03\xf1\x02\xfd\x02\xf0\x00\x00\x80\xff";
        assert_eq!(
            all(Form::ZipList, ziplist).unwrap(),
            ["hi", "-1", "0", "12", "-8388608"]
        );
        assert_eq!(all(Form::Lone, b"all of it").unwrap(), ["all of it"]);
        assert_eq!(all(Form::Lone, b"").unwrap(), [""]);
    }

    #[test]
    fn contradictions_are_found() {
        for (form, bytes, want) in [
            (Form::IntSet, &b"\x03\0\0\0\0\0\0\0"[..], ENCODING),
            (Form::IntSet, b"\x02\0\0\0\x02\0\0\0\x01\0", SIZE),
            (Form::IntSet, b"\x08\0\0\0\xff\xff\xff\xff\x01\0", SIZE),
            (Form::ZipMap, b"\x01\x03foo\x03\x00bar", SHORT),
            (Form::ZipMap, b"\x02\x03foo\x03\x00bar\xff", COUNT),
            (Form::ZipMap, b"\x01\x03foo\x03\x00bar\xff\x01", END),
            (Form::ZipMap, b"\x01\xfe\xff\xff\xff\xffoo", SHORT),
            (Form::ZipList, b"\x0b\0\0\0\x0a\0\0\0\x01\0\xff", COUNT),
            (
                Form::ZipList,
                b"\x0d\0\0\0\x0a\0\0\0\x01\0\x00\xff\xff",
                ENCODING,
            ),
            (Form::ZipList, b"\x0c\0\0\0\x0a\0\0\0\x00\0\xff", SIZE),
            (Form::ListPack, b"\x07\0\0\0\x01\0\xff", COUNT),
            (Form::ListPack, b"", SHORT),
        ] {
            assert_eq!(all(form, bytes), Err(want), "{form:?} {bytes:?}");
        }
    }
}
