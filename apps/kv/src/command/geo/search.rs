//! GEOSEARCH and GEORADIUS.

use super::super::sorted_set::KIND;
use super::super::{Call, Failure, MAX_REPLY, Outcome};
use super::Point;
use super::hash;
use super::query::{Form, Middle, Order, Query};
use crate::error::{Error, Result};
use crate::memory::{Access, Memory};
use crate::resp::reply::Reply;
use crate::store::collection::Collection;
use crate::store::collection::sorted::Edge;

/// Bytes that a place counts beside its name towards a reply's limit.
const OVERHEAD: usize = 32;

/// A member that was found.
struct Hit {
    member: Vec<u8>,
    score: f64,
    point: Point,
    /// Meters.
    distance: f64,
}

/// What came of a search, or why it makes no sense.
type Found = std::result::Result<Vec<Hit>, Failure>;

impl Query<'_> {
    /// `failure`: what is wrong with the words behind those that the query has.
    fn run<M: Memory>(
        &self,
        set: &Collection<'_, M>,
        failure: &mut Option<Failure>,
    ) -> Result<Found> {
        let middle = match self.middle {
            None => None,
            Some(Middle::Point(point)) => Some(point),
            Some(Middle::Member(member)) => match set.score(member)? {
                Some(score) => Some(hash::point(score)),
                None => return Ok(Err("ERR could not decode requested zset member".into())),
            },
        };
        if let Some(failure) = failure.take() {
            return Ok(Err(failure));
        }
        let Some(middle) = middle else {
            return Ok(Ok(Vec::new()));
        };
        let mut hits = self.collect(set, middle)?;
        let order = match self.order {
            None if self.count.is_some() && !self.any => Some(Order::Nearest),
            order => order,
        };
        if order.is_some() {
            hits.sort_by(|one, two| one.distance.total_cmp(&two.distance));
        }
        if order == Some(Order::Farthest) {
            hits.reverse();
        }
        if let Some(count) = self.count {
            hits.truncate(usize::try_from(count).unwrap_or(usize::MAX));
        }
        Ok(Ok(hits))
    }

    fn collect<M: Memory>(&self, set: &Collection<'_, M>, middle: Point) -> Result<Vec<Hit>> {
        let Some(shape) = self.shape else {
            return Ok(Vec::new());
        };
        let most = self.count.filter(|_| self.any).unwrap_or(u64::MAX);
        let (mut hits, mut bytes) = (Vec::new(), 0);
        for scores in shape.scores(middle) {
            let edge = |score| Edge::Score {
                score,
                behind: false,
            };
            let from = set.position(&edge(scores.start))?;
            let to = set.position(&edge(scores.end))?;
            set.span(from..to, false, |member, score| {
                let point = hash::point(score);
                if let Some(distance) = shape.reaches(middle, point) {
                    bytes += member.len() + OVERHEAD;
                    hits.push(Hit {
                        member: member.to_vec(),
                        score,
                        point,
                        distance,
                    });
                }
                (hits.len() as u64) < most && bytes <= MAX_REPLY
            })?;
            if bytes > MAX_REPLY {
                return Err(Error::ReplyTooLong);
            }
            if hits.len() as u64 >= most {
                break;
            }
        }
        Ok(hits)
    }

    fn write(&self, reply: &mut Reply<'_>, hits: &[Hit]) {
        let more = [self.distances, self.numbers, self.coordinates];
        let more = more.into_iter().filter(|more| *more).count();
        reply.array(hits.len());
        for hit in hits {
            if more != 0 {
                reply.array(1 + more);
            }
            reply.bulk(&hit.member);
            if self.distances {
                reply.length(hit.distance / self.unit);
            }
            if self.numbers {
                reply.int(hit.score as i64);
            }
            if self.coordinates {
                reply.point(hit.point);
            }
        }
    }
}

/// Searches in the key that is the word at `at`.
fn search<M: Memory>(call: &mut Call<'_, '_, M>, at: usize, form: Form) -> Outcome {
    let mut query = Query::default();
    let mut failure = query.parse(call, form).err();
    let key = call.word(at);
    let Some(to) = query.store else {
        let hits = call.sorted_set(key, |set| query.run(set, &mut failure))?;
        let hits = hits.transpose()?;
        if let Some(failure) = failure {
            return Err(failure);
        }
        query.write(&mut call.reply, &hits.unwrap_or_default());
        return Ok(());
    };
    let count = call.db.together(&[key, to], Access::Write, |db| {
        let hits = match db.view(key, KIND, |set| query.run(set, &mut failure))? {
            Some(Ok(hits)) => hits,
            None => Vec::new(),
            Some(Err(failure)) => return Ok(Err(failure)),
        };
        if let Some(failure) = failure.take() {
            return Ok(Err(failure));
        }
        let members: Vec<_> = hits
            .into_iter()
            .map(|hit| match query.store_distances {
                true => (hit.member, hit.distance / query.unit),
                false => (hit.member, hit.score),
            })
            .collect();
        Ok(Ok(db.store_members(to, &members)?))
    })?;
    call.reply.count(count?);
    Ok(())
}

pub(crate) fn geosearch<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    search(call, 1, Form::Search)
}

pub(crate) fn geosearchstore<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    search(call, 2, Form::SearchStore)
}

pub(crate) fn georadius<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    search(call, 1, Form::Radius { stores: true })
}

pub(crate) fn georadius_ro<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    search(call, 1, Form::Radius { stores: false })
}

pub(crate) fn georadiusbymember<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    search(call, 1, Form::RadiusByMember { stores: true })
}

pub(crate) fn georadiusbymember_ro<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    search(call, 1, Form::RadiusByMember { stores: false })
}
