// The scoreboard: what makes lock and unlock idempotent (crates/proto/src/flowcc/score.rs says why it is as it is).
#ifndef RACKMEM_SCORE_H
#define RACKMEM_SCORE_H

#include "entry.h"

/// `seq << 32 | provider + 1 << 8 | elsewhere << 3 | status << 1 | granted`, of which `seq` is the low half of the number.
#define SCORE_GRANTED 1
#define SCORE_ELSEWHERE (1 << 3)

enum verdict {
	/// Granted, and this is the first copy: the lock that its pass took stays.
	FIRST,
	/// An earlier copy was granted: forward this one, too.
	GRANTED,
	REFUSED,
	/// Another owner decides.
	ELSEWHERE,
	STALE,
};

/// Where a granted request went: the entry's status then, and the provider, or -1.
struct route {
	__u8 status;
	int provider;
};

always __u64 score_of(__u32 seq, __u32 low)
{
	return (__u64)seq << 32 | low;
}

always struct route route_of(__u64 score)
{
	__u8 status = score >> 1 & 3;
	struct route route = {
		.status = status <= STATUS_MODIFIED ? status : STATUS_UNSHARED,
		.provider = (int)(score >> 8 & 0x1ff) - 1,
	};
	return route;
}

/// Enters a request into its score; `acquired`: this pass took the lock; `valid`: the check table agreed. `now` is where
/// it would go, and becomes where its first copy went.
always enum verdict enter(__u64 *row, __u32 seq, bool acquired, bool valid, struct route *now)
{
	__u64 score = *row;
	switch (compare(seq, score >> 32)) {
	case NEWER:
		if (!acquired || !valid) {
			*row = score_of(seq, 0);
			return REFUSED;
		}
		*row = score_of(seq, (__u32)(now->provider + 1) << 8 | now->status << 1 | SCORE_GRANTED);
		return FIRST;
	case SAME:
		if (score & SCORE_GRANTED) {
#if PLANT != 4
			*now = route_of(score);
#endif
			return GRANTED;
		}
		return score & SCORE_ELSEWHERE ? ELSEWHERE : REFUSED;
	default:
		return STALE;
	}
}

/// Enters a request whose entry is not here.
always enum verdict pass_on(__u64 *row, __u32 seq)
{
	__u64 score = *row;
	switch (compare(seq, score >> 32)) {
	case NEWER:
		*row = score_of(seq, SCORE_ELSEWHERE);
		return ELSEWHERE;
	case SAME:
		if (score & SCORE_ELSEWHERE)
			return ELSEWHERE;
		return score & SCORE_GRANTED ? STALE : REFUSED;
	default:
		return STALE;
	}
}

/// Takes the authority to release: true exactly once for a granted event.
always bool leave(__u64 *row, __u32 seq)
{
	__u64 score = *row;
	if ((__u32)(score >> 32) != seq || !(score & SCORE_GRANTED))
		return false;
#if PLANT != 5
	*row = score & ~(__u64)SCORE_GRANTED;
#endif
	return true;
}

#endif
