//! The checksum of Redis' files: CRC-64 with Jones' polynomial, bits reflected, from 0.

/// The polynomial, reflected.
const POLYNOMIAL: u64 = 0x95ac_9329_ac4b_c9b5;

/// What a byte does, `TABLES[n]` with n bytes behind it.
static TABLES: [[u64; 256]; 8] = tables();

const fn tables() -> [[u64; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let (mut crc, mut bit) = (byte as u64, 0);
        while bit < 8 {
            crc = (crc >> 1) ^ (POLYNOMIAL * (crc & 1));
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut behind = 1;
    while behind < 8 {
        let mut byte = 0;
        while byte < 256 {
            let crc = tables[behind - 1][byte];
            tables[behind][byte] = (crc >> 8) ^ tables[0][(crc & 255) as usize];
            byte += 1;
        }
        behind += 1;
    }
    tables
}

/// The checksum of what has the checksum `crc`, and `bytes` behind it.
pub fn extend(mut crc: u64, bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        let mixed = (crc ^ u64::from_le_bytes(*word)).to_le_bytes();
        crc = mixed
            .iter()
            .zip(TABLES.iter().rev())
            .fold(0, |crc, (byte, table)| crc ^ table[usize::from(*byte)]);
    }
    rest.iter().fold(crc, |crc, byte| {
        (crc >> 8) ^ TABLES[0][usize::from(crc as u8 ^ byte)]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_of_the_polynomial() {
        assert_eq!(extend(0, b"123456789"), 0xe9c6_d914_c4b8_d9ca);
        let bytes: Vec<u8> = (0..100).collect();
        for split in 0..bytes.len() {
            let (a, b) = bytes.split_at(split);
            assert_eq!(extend(extend(0, a), b), extend(0, &bytes), "{split}");
        }
    }
}
