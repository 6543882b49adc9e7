//! Sorted sets: members with a score each, in the order of their scores.

mod add;
mod blocking;
mod combine;
mod edges;
mod look;
mod pop;
mod random;
mod range;
mod remove;
mod scan;

pub(in crate::command) use self::add::{Rules, add};
pub(crate) use self::add::{zadd, zincrby};
pub(crate) use self::blocking::{bzmpop, bzpopmax, bzpopmin};
pub(crate) use self::combine::{
    zdiff, zdiffstore, zinter, zintercard, zinterstore, zunion, zunionstore,
};
pub(crate) use self::look::{zcard, zcount, zlexcount, zmscore, zrank, zrevrank, zscore};
pub(crate) use self::pop::{zmpop, zpopmax, zpopmin};
pub(crate) use self::random::zrandmember;
pub(crate) use self::range::{
    zrange, zrangebylex, zrangebyscore, zrangestore, zrevrange, zrevrangebylex, zrevrangebyscore,
};
pub(crate) use self::remove::{zrem, zremrangebylex, zremrangebyrank, zremrangebyscore};
pub(crate) use self::scan::zscan;

use super::{Call, Failure, MAX_REPLY};
use crate::error::Result;
use crate::memory::Memory;
use crate::resp::reply::{Protocol, Reply};
use crate::store::Kind;
use crate::store::collection::Collection;
use crate::store::collection::sorted::Scored;

pub(crate) const KIND: Kind = Kind::SortedSet;
const NOT_FLOAT: &str = "ERR value is not a valid float";
const NOT_POSITIVE: &str = "ERR value is out of range, must be positive";

impl<M: Memory> Call<'_, '_, M> {
    /// Shows `f` the sorted set of a key and counts whether there is one.
    pub(in crate::command) fn sorted_set<R>(
        &self,
        key: &[u8],
        f: impl FnMut(&Collection<'_, M>) -> Result<R>,
    ) -> std::result::Result<Option<R>, Failure> {
        let found = self.db.view(key, KIND, f)?;
        self.found(found.is_some());
        Ok(found)
    }
}

impl Reply<'_> {
    /// Members in an array, with their scores behind them if `scores`, in pairs where the protocol
    /// has them.
    fn members(&mut self, members: &[Scored], scores: bool) {
        if !scores {
            self.array(members.len());
            members.iter().for_each(|(member, _)| self.bulk(member));
        } else if self.protocol == Protocol::Resp3 {
            self.pairs(members);
        } else {
            self.flat(members);
        }
    }

    fn flat(&mut self, members: &[Scored]) {
        self.array(2 * members.len());
        for (member, score) in members {
            self.bulk(member);
            self.double(*score);
        }
    }

    fn pairs(&mut self, members: &[Scored]) {
        self.array(members.len());
        for (member, score) in members {
            self.array(2);
            self.bulk(member);
            self.double(*score);
        }
    }
}
