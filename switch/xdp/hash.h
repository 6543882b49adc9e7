// The hash unit: CRC-32 as Ethernet has it. Both hashes of the program are made of it.
#ifndef RACKMEM_HASH_H
#define RACKMEM_HASH_H

#include "state.h"
#include "tables.gen.h"

/// Over the big-endian bytes of a word, as crates/proto/src/switch/hash.rs.
always __u32 crc32(__u64 word)
{
	word ^= 0xffffffff00000000ull;
	__u32 crc = 0;
#pragma unroll
	for (int i = 0; i < 8; i++)
		crc ^= CRC[i][(word >> (8 * i)) & 0xff];
	return ~crc;
}

/// The place of the lowest bit of a set that is not empty: a priority encoder, without branches, which the verifier would
/// follow one by one. The multiplication puts another five bits on top for every lowest bit.
always int lowest(__u32 set)
{
	return LOWEST[((set & -set) * LOWEST_MULTIPLIER) >> 27];
}

#endif
